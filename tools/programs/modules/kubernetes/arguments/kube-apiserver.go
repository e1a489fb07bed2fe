//go:build ignore

package main

import (
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime/schema"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer/modes"
)

func main() {
	apis := []string{}
	for _, scheme := range []interface {
		PrioritizedVersionsAllGroups() []schema.GroupVersion
	}{legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme} {
		for _, version := range scheme.PrioritizedVersionsAllGroups() {
			apis = append(apis, version.String())
		}
	}
	printArguments(app.NewAPIServerCommand().Flags(), map[string][]string{
		"admission-plugins":  options.NewServerRunOptions().Admission.GenericAdmission.Plugins.Registered(),
		"authorization-mode": modes.AuthorizationModeChoices,
		"runtime-config":     apis,
	})
}
