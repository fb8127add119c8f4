// The templates of kubectl: lines of {"template": …, "data": …} in, {"text": …} or {"error": …} out.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/client-go/util/jsonpath"
	kjson "sigs.k8s.io/json"
)

type request struct {
	Template string          `json:"template"`
	Data     json.RawMessage `json:"data"`
}

// kubectl itself ends where the package panics.
func fill(asked request) (text string, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	var data any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(asked.Data, &data); err != nil {
		return "", err
	}
	template := jsonpath.New("out").AllowMissingKeys(true)
	if err := template.Parse(asked.Template); err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = template.Execute(&out, data)
	return out.String(), err
}

func main() {
	in := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	out := json.NewEncoder(os.Stdout)
	var asked request
	for in.Decode(&asked) == nil {
		if text, err := fill(asked); err != nil {
			out.Encode(map[string]string{"error": err.Error()})
		} else {
			out.Encode(map[string]string{"text": text})
		}
		asked = request{}
	}
}
