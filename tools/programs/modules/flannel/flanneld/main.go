// Command flanneld is flannel without the backends that other clouds need: VXLAN, with leases from
// the Kubernetes API. Flags and files are upstream's, as far as the program's DaemonSet uses them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/flannel-io/flannel/pkg/backend"
	_ "github.com/flannel-io/flannel/pkg/backend/vxlan"
	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/ipmatch"
	"github.com/flannel-io/flannel/pkg/subnet"
	"github.com/flannel-io/flannel/pkg/subnet/kube"
	"github.com/flannel-io/flannel/pkg/trafficmngr/iptables"
	"k8s.io/klog/v2"
)

const (
	configuration    = "/etc/kube-flannel/net-conf.json"
	subnetFile       = "/run/flannel/subnet.env"
	annotationPrefix = "flannel.alpha.coreos.com"
)

func main() {
	masquerade := flag.Bool("ip-masq", false, "masquerade what leaves the pod network")
	fromKubernetes := flag.Bool("kube-subnet-mgr", false, "take leases from the Kubernetes API (required)")
	resync := flag.Int("iptables-resync", 5, "seconds between looks at the rules")
	flag.Parse()
	if !*fromKubernetes {
		klog.Exit("this build knows --kube-subnet-mgr only")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *masquerade, *resync); err != nil && !errors.Is(err, context.Canceled) {
		klog.Exit(err)
	}
}

func run(ctx context.Context, masquerade bool, resync int) error {
	leases, err := kube.NewSubnetManager(ctx, "", "", annotationPrefix, configuration, true)
	if err != nil {
		return fmt.Errorf("subnet manager: %w", err)
	}
	config, err := leases.GetNetworkConfig(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", configuration, err)
	}
	outer, err := outerInterface(ctx, leases, config)
	if err != nil {
		return fmt.Errorf("the node's interface: %w", err)
	}

	var running sync.WaitGroup
	vxlan, err := backend.NewManager(ctx, leases, outer).GetBackend(config.BackendType)
	if err != nil {
		return err
	}
	network, err := vxlan.RegisterNetwork(ctx, &running, config)
	if err != nil {
		return fmt.Errorf("registering the network: %w", err)
	}
	if err := writeRules(ctx, config, network, masquerade, resync); err != nil {
		return err
	}
	lease := network.Lease()
	err = leases.HandleSubnetFile(subnetFile, config, masquerade, lease.Subnet, lease.IPv6Subnet, network.MTU())
	if err != nil {
		return fmt.Errorf("%s: %w", subnetFile, err)
	}
	klog.Infof("subnet %s, MTU %d", lease.Subnet, network.MTU())

	running.Add(1)
	go func() {
		defer running.Done()
		network.Run(ctx)
	}()
	err = leases.CompleteLease(ctx, lease, &running)
	running.Wait()
	return err
}

// outerInterface is the one that packets between nodes take: the default route's, or that of the
// address the Node is annotated with.
func outerInterface(
	ctx context.Context, leases subnet.Manager, config *subnet.Config,
) (*backend.ExternalInterface, error) {
	family, err := ipmatch.GetIPFamily(config.EnableIPv4, config.EnableIPv6)
	if err != nil {
		return nil, err
	}
	address, address6 := leases.GetStoredPublicIP(ctx)
	public := ipmatch.PublicIPOpts{PublicIP: address, PublicIPv6: address6}
	return ipmatch.LookupExtIface(address, "", "", family, public)
}

func writeRules(
	ctx context.Context, config *subnet.Config, network backend.Network, masquerade bool, resync int,
) error {
	rules := &iptables.IPTablesManager{}
	if err := rules.Init(ctx); err != nil {
		return fmt.Errorf("iptables: %w", err)
	}
	if masquerade {
		// Leases come from the Node's pod range, which never changes: there are no earlier rules.
		none, none6 := ip.IP4Net{}, ip.IP6Net{}
		err := rules.SetupAndEnsureMasqRules(ctx, config.Network, none, none, config.IPv6Network, none6, none6,
			network.Lease(), resync, false)
		if err != nil {
			return fmt.Errorf("masquerading: %w", err)
		}
	}
	rules.SetupAndEnsureForwardRules(ctx, config.Network, config.IPv6Network, resync)
	return nil
}
