//go:build ignore

// What one program takes on its command line, as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	_ "k8s.io/component-base/logs/json/register"
)

// printArguments writes the type of each flag, the state of each feature gate and the gates that it
// depends on, and what lists are made of.
func printArguments(flags *pflag.FlagSet, values map[string][]string) {
	// cobra adds its own only when a command runs.
	types := map[string]string{"help": "bool"}
	flags.VisitAll(func(flag *pflag.Flag) {
		// Every program takes both, and lists names with dashes.
		types[strings.ReplaceAll(flag.Name, "_", "-")] = typeOf(flag.Value)
	})

	gates := map[string]string{}
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		gates[string(name)] = state(spec)
	}
	dependencies := map[string][]string{}
	for name, needed := range utilfeature.DefaultFeatureGate.Dependencies() {
		for _, one := range needed {
			dependencies[string(name)] = append(dependencies[string(name)], string(one))
		}
		sort.Strings(dependencies[string(name)])
	}

	values["tls-cipher-suites"] = append(cliflag.PreferredTLSCipherNames(), cliflag.InsecureTLSCipherNames()...)
	values["tls-min-version"] = cliflag.TLSPossibleVersions()
	for _, known := range values {
		sort.Strings(known)
	}

	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(map[string]any{
		"flags": types, "featureGates": gates, "dependencies": dependencies, "values": values,
	}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// typeOf is the name that a flag has for its type, where no other type has the same.
func typeOf(value pflag.Value) string {
	switch fmt.Sprintf("%T", value) {
	case "*flag.ConfigurationMap":
		return "configurationMap"
	case "*flag.IPVar", "flag.IPVar":
		return "sloppyIP"
	}
	// One of them may be wrapped, so that its field does not tell it.
	if value.Type() == "mapStringString" && value.Set("a=1,b") == nil {
		return "mapStringStringNoSplit"
	}
	return value.Type()
}

// state is a gate's stage and default, and whether that is all it can be.
func state(spec featuregate.FeatureSpec) string {
	stage := string(spec.PreRelease)
	if spec.PreRelease == featuregate.GA {
		stage = "GA"
	}
	words := []string{stage, fmt.Sprint(spec.Default)}
	if spec.LockToDefault {
		words = append(words, "locked")
	}
	return strings.Join(words, " ")
}
