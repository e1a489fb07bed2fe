// Command flannel is the CNI plugin of that name: it hands the bridge plugin what flanneld wrote
// about this node's subnet.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

const (
	subnetFile = "/run/flannel/subnet.env"
	// What a container was added with, since the subnet file does not outlive a reboot.
	stateFolder = "/var/lib/cni/flannel"
)

type network struct {
	types.NetConf
	Delegate map[string]any `json:"delegate"`
}

func main() {
	skel.PluginMainFuncs(
		skel.CNIFuncs{Add: add, Del: remove, Check: check}, version.All, "flannel, delegating to bridge",
	)
}

func add(args *skel.CmdArgs) error {
	config, err := delegateConfig(args.StdinData)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(stateFolder, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(statePath(args), config, 0o600); err != nil {
		return err
	}
	result, err := invoke.DelegateAdd(context.Background(), pluginOf(config), config, nil)
	if err != nil {
		return err
	}
	return result.Print()
}

func remove(args *skel.CmdArgs) error {
	config, err := os.ReadFile(statePath(args))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := invoke.DelegateDel(context.Background(), pluginOf(config), config, nil); err != nil {
		return err
	}
	return os.Remove(statePath(args))
}

func check(args *skel.CmdArgs) error {
	config, err := os.ReadFile(statePath(args))
	if err != nil {
		return err
	}
	var given types.NetConf
	if err := json.Unmarshal(args.StdinData, &given); err != nil {
		return err
	}
	var full map[string]any
	if err := json.Unmarshal(config, &full); err != nil {
		return err
	}
	full["prevResult"] = given.RawPrevResult
	config, err = json.Marshal(full)
	if err != nil {
		return err
	}
	return invoke.DelegateCheck(context.Background(), pluginOf(config), config, nil)
}

func statePath(args *skel.CmdArgs) string {
	return filepath.Join(stateFolder, args.ContainerID+"-"+args.IfName)
}

func pluginOf(config []byte) string {
	var conf types.NetConf
	_ = json.Unmarshal(config, &conf)
	return conf.Type
}

func delegateConfig(stdin []byte) ([]byte, error) {
	var given network
	if err := json.Unmarshal(stdin, &given); err != nil {
		return nil, fmt.Errorf("network configuration: %w", err)
	}
	text, err := os.ReadFile(subnetFile)
	if err != nil {
		return nil, fmt.Errorf("%w: flanneld has not got this node's subnet yet", err)
	}
	return merge(given, parseEnvironment(text))
}

// merge is the operator's delegate over what flanneld knows.
func merge(given network, subnet map[string]string) ([]byte, error) {
	mtu, err := strconv.Atoi(subnet["FLANNEL_MTU"])
	if err != nil {
		return nil, fmt.Errorf("%s: FLANNEL_MTU: %w", subnetFile, err)
	}
	gateway, err := netip.ParsePrefix(subnet["FLANNEL_SUBNET"])
	if err != nil {
		return nil, fmt.Errorf("%s: FLANNEL_SUBNET: %w", subnetFile, err)
	}
	config := map[string]any{
		"type":      "bridge",
		"isGateway": true,
		"mtu":       mtu,
		// Only one of the two masquerades.
		"ipMasq": subnet["FLANNEL_IPMASQ"] != "true",
	}
	maps.Copy(config, given.Delegate)
	config["name"] = given.Name
	config["cniVersion"] = given.CNIVersion
	config["ipam"] = map[string]any{
		"type":   "host-local",
		"ranges": [][]map[string]string{{{"subnet": gateway.Masked().String()}}},
		"routes": []map[string]string{{"dst": subnet["FLANNEL_NETWORK"]}},
	}
	return json.Marshal(config)
}

func parseEnvironment(text []byte) map[string]string {
	values := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), "="); ok {
			values[name] = value
		}
	}
	return values
}
