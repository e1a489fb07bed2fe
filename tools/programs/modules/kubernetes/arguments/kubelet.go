//go:build ignore

package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	kubeletapis "k8s.io/kubelet/pkg/apis"
	_ "k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
)

// The kubelet's command keeps its flags to itself, so they are put together as it does.
func main() {
	flags := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	configuration, err := options.NewKubeletConfiguration()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	options.NewKubeletFlags().AddFlags(flags)
	options.AddKubeletConfigFlags(flags, configuration)
	options.AddGlobalFlags(flags)
	printArguments(flags, map[string][]string{
		"node-labels": append(kubeletapis.KubeletLabels(), kubeletapis.KubeletLabelNamespaces()...),
	})
}
