/** Names that `iptables -L` prints for ports, as IANA registered them. */
const registered = `
  ftp:21 ssh:22 telnet:23 smtp:25 domain:53 bootps:67 bootpc:68 tftp:69 gopher:70 http:80
  kerberos:88 pop3:110 sunrpc:111 ntp:123 imap:143 imap2:143 snmp:161 bgp:179 ldap:389 https:443
  microsoft-ds:445 submission:587 ldaps:636 domain-s:853 rsync:873 imaps:993 pop3s:995 socks:1080
  openvpn:1194 ms-sql-s:1433 mqtt:1883 nfs:2049 etcd-client:2379 etcd-server:2380 mysql:3306
  ms-wbt-server:3389 vxlan:4789 sip:5060 xmpp-client:5222 mdns:5353 postgresql:5432 amqp:5672
  redis:6379 http-alt:8080 secure-mqtt:8883 pdl-datastream:9100 git:9418`;

export const serviceNames: Readonly<Record<string, number>> = Object.fromEntries(
  [...registered.matchAll(/(\S+):(\d+)/g)].map(([, name = "", port]) => [name, Number(port)]),
);
