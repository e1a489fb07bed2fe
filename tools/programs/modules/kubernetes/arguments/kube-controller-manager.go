//go:build ignore

package main

import "k8s.io/kubernetes/cmd/kube-controller-manager/app"

func main() {
	controllers := app.KnownControllers()
	for alias := range app.ControllerAliases() {
		controllers = append(controllers, alias)
	}
	printArguments(app.NewControllerManagerCommand().Flags(), map[string][]string{
		"controllers": controllers,
	})
}
