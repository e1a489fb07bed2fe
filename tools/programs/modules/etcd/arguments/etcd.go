//go:build ignore

// What etcd takes on its command line, as JSON.
package main

import (
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	"go.etcd.io/etcd/pkg/v3/featuregate"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/features"
	"go.uber.org/zap"
)

// Flags that etcd's main package keeps to itself.
var hidden = map[string]string{
	"config-file":           "string",
	"discovery-fallback":    "SelectiveStringValue",
	"help":                  "bool",
	"initial-cluster-state": "SelectiveStringValue",
	"v2-deprecation":        "SelectiveStringsValue",
	"version":               "bool",
}

func main() {
	types := map[string]string{}
	for name, kind := range hidden {
		types[name] = kind
	}
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	embed.NewConfig().AddFlags(flags)
	flags.VisitAll(func(one *flag.Flag) { types[one.Name] = typeOf(one.Value) })

	gates := map[string]string{}
	known := features.NewDefaultServerFeatureGate("default", zap.NewNop()).(featuregate.MutableFeatureGate)
	for name, spec := range known.GetAll() {
		gates[string(name)] = state(spec)
	}

	// etcd takes Go's names, and two that are older.
	suites := []string{"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"}
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		suites = append(suites, suite.Name)
	}
	sort.Strings(suites)

	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{
		"flags": types, "featureGates": gates, "dependencies": map[string][]string{},
		"values": map[string][]string{
			"cipher-suites":  suites,
			"v2-deprecation": {"gone", "write-only", "write-only-drop-data"},
		},
	}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// typeOf names Go's own kinds as pflag does, and etcd's by their types.
func typeOf(value flag.Value) string {
	name := reflect.TypeOf(value).Elem().Name()
	if getter, ok := value.(flag.Getter); ok && strings.HasSuffix(name, "Value") {
		if _, isDuration := getter.Get().(interface{ Seconds() float64 }); !isDuration {
			return reflect.TypeOf(getter.Get()).String()
		}
		return "duration"
	}
	return name
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
