//go:build ignore

package main

import "k8s.io/kubernetes/cmd/kube-scheduler/app"

func main() {
	printArguments(app.NewSchedulerCommand().Flags(), map[string][]string{})
}
