/** What VXLAN puts around a pod's packet: Ethernet, IPv4, UDP and its own header. */
const vxlanBytes = 50;

/**
 * The longest packet that a pod may send: Azure's network interfaces take 1500 bytes.
 *
 * @see https://learn.microsoft.com/azure/virtual-network/virtual-network-tcpip-performance-tuning
 */
export const podMtu = 1500 - vxlanBytes;

/** flannel's net-conf.json. Its MTU it takes from the network interface, less VXLAN's share. */
export const netConf = (podCidr: string): string =>
  JSON.stringify({ Network: podCidr, Backend: { Type: "vxlan" } }, null, 2);
