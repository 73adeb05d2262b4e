package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	in := map[string]string{
		"ours": `goos: linux
BenchmarkExecution/fresh-2 10 2000 ns/op
BenchmarkExecution/fresh-2 10 1000 ns/op
BenchmarkExecution/compute/fib-2 1 40000000 ns/op 30000000 cpu-ns/op
BenchmarkExecution/growth-2 1 1000000000 ns/op 1024 B-after 0 B/execution
PASS
`,
		"theirs": `BenchmarkOther/fresh-8 10 1500 ns/op
BenchmarkOther/growth-2 1 500000000 ns/op 20971520 B-after -12 B/execution
`,
	}
	tests := map[string]struct {
		cpu  bool
		want string
	}{
		"wall clock and memory": {want: `| | ours | theirs |
|---|---|---|
| fresh | 1.00 µs | 1.50 µs (1.50) |
| compute/fib | 40.0 ms | – |
| growth | 1.00 s | 500 ms (0.50) |
| growth, B-after | 1.00 KiB | 20.0 MiB (20480.00) |
| growth, B/execution | 0.00 B | -12.0 B |
`},
		"processor time": {cpu: true, want: `| | ours | theirs |
|---|---|---|
| compute/fib | 30.0 ms | – |
`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tab := table{cpu: tc.cpu}
			for _, name := range []string{"ours", "theirs"} {
				tab.subjects = append(tab.subjects, name)
				if err := tab.add(name, strings.NewReader(in[name]), name); err != nil {
					t.Fatal(err)
				}
			}
			var got strings.Builder
			if err := tab.write(&got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestTableOfNothing(t *testing.T) {
	var tab table
	if err := tab.write(&strings.Builder{}); err == nil {
		t.Error("a table without benchmarks is no error")
	}
}
