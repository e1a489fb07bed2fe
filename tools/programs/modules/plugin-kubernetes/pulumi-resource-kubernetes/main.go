// Pulumi's kubernetes plugin. Upstream's own main embeds copies of two files, which its Go module lacks; this
// one reads the originals beside itself.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
)

// Set by the linker: the engine asks for the version that the npm package has.
var version string

func read(name string) []byte {
	program, err := os.Executable()
	if err == nil {
		var text []byte
		if text, err = os.ReadFile(filepath.Join(filepath.Dir(program), name)); err == nil {
			return text
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
	return nil
}

func main() {
	provider.Serve("kubernetes", version, read("schema.json"), read("terraform-mapping.json"))
}
