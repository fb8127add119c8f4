// The reader of kubectl, Helm and vCluster: texts as lines of JSON strings in, {"json": …} or {"error": …} out.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	in := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	out := json.NewEncoder(os.Stdout)
	var text string
	for in.Decode(&text) == nil {
		read, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			out.Encode(map[string]string{"error": err.Error()})
		} else {
			out.Encode(map[string]json.RawMessage{"json": read})
		}
	}
}
