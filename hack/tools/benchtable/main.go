// Benchtable compares subjects that ran the same benchmarks, as a Markdown table:
//
//	benchtable [-cpu] NAME=FILE...
//
// With -cpu it is about cpu-ns/op, otherwise about everything else. Files are in Go's benchmark format. The first subject is the base: every other
// cell has its ratio to the base's, above 1 where the base is better (all units
// here are better when smaller). A cell is the best of its rounds, because
// whatever else a machine does makes a round slower, never faster; benchstat has
// the spread.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"regexp"
	"strings"

	"golang.org/x/perf/benchfmt"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("benchtable: ")
	cpu := flag.Bool("cpu", false, "compare processor time")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("usage: benchtable [-cpu] NAME=FILE...")
	}
	t := table{cpu: *cpu}
	for _, arg := range flag.Args() {
		name, path, ok := strings.Cut(arg, "=")
		if !ok {
			log.Fatalf("%q is not NAME=FILE", arg)
		}
		if err := t.read(name, path); err != nil {
			log.Fatal(err)
		}
	}
	if err := t.write(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// row is one benchmark in one unit.
type row struct{ name, unit string }

// table holds the best value of each row and subject.
type table struct {
	cpu      bool // processor time alone, or all but that
	rows     []row
	subjects []string
	best     map[row]map[string]float64
}

// Units as benchfmt has them.
const (
	unitWall = "sec/op"
	unitCPU  = "cpu-sec/op"
)

// prefix and suffix of a benchmark's name that all rows share.
var prefix, suffix = regexp.MustCompile(`^[^/]*/`), regexp.MustCompile(`-\d+$`)

func (t *table) read(subject, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	t.subjects = append(t.subjects, subject)
	return t.add(subject, f, path)
}

func (t *table) add(subject string, in io.Reader, path string) error {
	r := benchfmt.NewReader(in, path)
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.Result:
			name := suffix.ReplaceAllString(prefix.ReplaceAllString(rec.Name.String(), ""), "")
			for _, v := range rec.Values {
				if (v.Unit == unitCPU) != t.cpu {
					continue
				}
				t.put(row{name, v.Unit}, subject, v.Value)
			}
		case *benchfmt.SyntaxError:
			return rec
		}
	}
	return r.Err()
}

func (t *table) put(k row, subject string, v float64) {
	if t.best == nil {
		t.best = map[row]map[string]float64{}
	}
	if t.best[k] == nil {
		t.best[k] = map[string]float64{}
		t.rows = append(t.rows, k)
	}
	if old, ok := t.best[k][subject]; !ok || v < old {
		t.best[k][subject] = v
	}
}

func (t *table) write(out io.Writer) error {
	if len(t.rows) == 0 {
		return errors.New("no benchmark in any file")
	}
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "| | %s |\n|---%s|\n", strings.Join(t.subjects, " | "), strings.Repeat("|---", len(t.subjects)))
	for _, k := range t.rows {
		base, based := t.best[k][t.subjects[0]]
		name := k.name
		if k.unit != unitWall && k.unit != unitCPU {
			name += ", " + k.unit
		}
		fmt.Fprintf(w, "| %s |", name)
		for i, s := range t.subjects {
			v, ok := t.best[k][s]
			switch {
			case !ok:
				fmt.Fprint(w, " – |")
			case i == 0 || !based || base <= 0 || v <= 0:
				fmt.Fprintf(w, " %s |", quantity(v, k.unit))
			default:
				fmt.Fprintf(w, " %s (%.2f) |", quantity(v, k.unit), v/base)
			}
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// quantity prints a value with three digits and a fitting unit.
func quantity(v float64, unit string) string {
	type scale struct {
		of   float64
		name string
	}
	scales := []scale{{1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, "B"}}
	if unit == unitWall || unit == unitCPU {
		scales = []scale{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}}
	}
	x := scales[len(scales)-1]
	for _, s := range scales {
		if max(v, -v) >= s.of {
			x = s
			break
		}
	}
	n := v / x.of
	switch digits := max(n, -n); {
	case digits >= 100:
		return fmt.Sprintf("%.0f %s", n, x.name)
	case digits >= 10:
		return fmt.Sprintf("%.1f %s", n, x.name)
	}
	return fmt.Sprintf("%.2f %s", n, x.name)
}
