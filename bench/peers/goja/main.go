// The workload of bench/patch.ts in goja: one expression on every match of a path.
// Reads one JSON request per line and writes one JSON response per line: {"peer":"per-object","matches":10,"millis":500} returns
// {"objects":123,"nanos":500000000}.
// "per-object" creates a runtime for each object, "reused" calls a compiled function in one runtime for all objects.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/dop251/goja"
)

type request struct {
	Peer       string `json:"peer"`
	Expression string `json:"expression"`
	Matches    int    `json:"matches"`
	Millis     int64  `json:"millis"`
}

type object = map[string]any

// patcher applies the expression to all matches of one object.
type patcher func(o object) (object, error)

func main() {
	in := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			fatal(err)
		}
		objects, nanos, err := measure(r)
		if err != nil {
			fatal(err)
		}
		if err := out.Encode(map[string]int64{"objects": objects, "nanos": nanos}); err != nil {
			fatal(err)
		}
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func measure(r request) (int64, int64, error) {
	patch, err := newPatcher(r)
	if err != nil {
		return 0, 0, err
	}
	pool := make([]object, max(1, min(512, 20000/r.Matches)))
	for i := range pool {
		pool[i] = endpoints(r.Matches, i)
	}
	if err := check(patch, pool[0], r.Matches); err != nil {
		return 0, 0, err
	}
	limit := time.Duration(r.Millis) * time.Millisecond
	start := time.Now()
	var done int64
	for time.Since(start) < limit {
		for range max(1, 200/r.Matches) {
			if _, err := patch(pool[int(done)%len(pool)]); err != nil {
				return 0, 0, err
			}
			done++
		}
	}
	return done, time.Since(start).Nanoseconds(), nil
}

// check verifies the result of the patcher.
func check(patch patcher, o object, matches int) error {
	patched, err := patch(o)
	if err != nil {
		return err
	}
	last := patched["subsets"].([]any)[0].(object)["addresses"].([]any)[matches-1].(object)["hostname"]
	if want := fmt.Sprintf("my-vcluster-host-0-%d", matches-1); last != want {
		return fmt.Errorf("patched to %v, want %s", last, want)
	}
	return nil
}

func newPatcher(r request) (patcher, error) {
	if r.Peer == "reused" {
		vm := goja.New()
		result, err := vm.RunString("(function (value, context) { return (" + r.Expression + ") })")
		if err != nil {
			return nil, err
		}
		call, ok := goja.AssertFunction(result)
		if !ok {
			return nil, fmt.Errorf("not a function")
		}
		return func(o object) (object, error) {
			context := vm.ToValue(contextOf(o))
			return hostnames(o, func(value any) (any, error) {
				result, err := call(goja.Undefined(), vm.ToValue(value), context)
				if err != nil {
					return nil, err
				}
				return result.Export(), nil
			})
		}, nil
	}
	program, err := goja.Compile("expression", r.Expression, true)
	if err != nil {
		return nil, err
	}
	return func(o object) (object, error) {
		vm := goja.New()
		if err := vm.Set("context", contextOf(o)); err != nil {
			return nil, err
		}
		return hostnames(o, func(value any) (any, error) {
			if err := vm.Set("value", value); err != nil {
				return nil, err
			}
			result, err := vm.RunProgram(program)
			if err != nil {
				return nil, err
			}
			return result.Export(), nil
		})
	}, nil
}

func contextOf(o object) object {
	return object{
		"vcluster":      object{"name": "my-vcluster", "namespace": "my-namespace", "config": object{}},
		"virtualObject": o,
		"hostObject":    nil,
		"path":          "",
	}
}

// hostnames maps subsets[*].addresses[*].hostname without modifying its input.
func hostnames(o object, change func(value any) (any, error)) (object, error) {
	subsets := o["subsets"].([]any)
	newSubsets := make([]any, len(subsets))
	for i, s := range subsets {
		subset := s.(object)
		addresses := subset["addresses"].([]any)
		newAddresses := make([]any, len(addresses))
		for j, a := range addresses {
			address := a.(object)
			value, ok := address["hostname"]
			if !ok {
				newAddresses[j] = address
				continue
			}
			result, err := change(value)
			if err != nil {
				return nil, err
			}
			newAddresses[j] = with(address, "hostname", result)
		}
		newSubsets[i] = with(subset, "addresses", newAddresses)
	}
	return with(o, "subsets", newSubsets), nil
}

func with(o object, key string, value any) object {
	clone := maps.Clone(o)
	clone[key] = value
	return clone
}

func endpoints(matches, id int) object {
	addresses := make([]any, matches)
	for i := range addresses {
		addresses[i] = object{
			"ip":        fmt.Sprintf("10.%d.%d.%d", id%250, i/250, i%250+1),
			"hostname":  fmt.Sprintf("host-%d-%d", id, i),
			"nodeName":  "node-1",
			"targetRef": object{"kind": "Pod", "name": fmt.Sprintf("pod-%d-%d", id, i), "namespace": "default"},
		}
	}
	return object{
		"apiVersion": "v1",
		"kind":       "Endpoints",
		"metadata": object{
			"name": fmt.Sprintf("service-%d", id), "namespace": "default",
			"labels": object{"app": "web"}, "annotations": object{"example.com/owner": "team"},
		},
		"subsets": []any{object{
			"addresses": addresses,
			"ports":     []any{object{"name": "http", "port": int64(80), "protocol": "TCP"}},
		}},
	}
}
