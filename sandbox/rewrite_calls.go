package sandbox

import (
	"errors"
	"slices"
)

// callGraph says which function of the module may call which. Functions are
// numbered without the imports.
type callGraph struct {
	direct   [][]int32 // callees
	indirect []bool    // has a call through the table
	table    []int32   // what is in the table, once each
	inTable  []bool
}

// spenders answers which functions spend fuel at their entry, so that every
// recursion does: without them no function can come back to itself. It is not
// every function that calls another one, because most calls of the interpreter
// go to small functions that end at once, and there are two for each loop head.
func (g *callGraph) spenders() []bool {
	spends := make([]bool, len(g.direct))
	// Through the table everything may call everything that is in it.
	for _, group := range g.cycles(spends, true) {
		for _, f := range group {
			if g.inTable[f] {
				spends[f] = true
			}
		}
	}
	// Of each group of functions that can still reach each other the one with the
	// most calls within it spends, until there is none.
	for {
		groups := g.cycles(spends, false)
		if len(groups) == 0 {
			return spends
		}
		for _, group := range groups {
			spends[g.busiest(group)] = true
		}
	}
}

// busiest answers the function with the largest product of calls to and from the
// others of the group.
func (g *callGraph) busiest(group []int32) int32 {
	member, in, out := map[int32]bool{}, map[int32]int{}, map[int32]int{}
	for _, f := range group {
		member[f] = true
	}
	for _, f := range group {
		for _, c := range g.direct[f] {
			if member[c] {
				out[f]++
				in[c]++
			}
		}
	}
	best := group[0]
	for _, f := range group {
		if in[f]*out[f] > in[best]*out[best] {
			best = f
		}
	}
	return best
}

// cycles lists the groups of functions, without those that spend, that can reach
// each other: Tarjan's strongly connected components with more than one member
// or a call to itself. With through, a call through the table counts.
func (g *callGraph) cycles(spends []bool, through bool) [][]int32 {
	t := &tarjan{graph: g, spends: spends, through: through, index: make([]int32, len(g.direct)+1), low: make([]int32, len(g.direct)+1), on: make([]bool, len(g.direct)+1)}
	for f := range g.direct {
		if !spends[f] && t.index[f] == 0 {
			t.visit(int32(f))
		}
	}
	for i := range t.groups {
		slices.Sort(t.groups[i])
	}
	return t.groups
}

type tarjan struct {
	graph      *callGraph
	spends, on []bool
	through    bool
	index, low []int32
	next       int32
	stack      []int32
	groups     [][]int32
}

// callees lists where f may go; the node after the last function is the table.
func (t *tarjan) callees(f int32) []int32 {
	if int(f) == len(t.graph.direct) {
		return t.graph.table
	}
	if t.through && t.graph.indirect[f] {
		return append(slices.Clip(t.graph.direct[f]), int32(len(t.graph.direct)))
	}
	return t.graph.direct[f]
}

func (t *tarjan) visit(f int32) {
	t.next++
	t.index[f], t.low[f] = t.next, t.next
	t.stack, t.on[f] = append(t.stack, f), true
	self := false
	for _, c := range t.callees(f) {
		switch {
		case int(c) < len(t.spends) && t.spends[c]:
		case t.index[c] == 0:
			t.visit(c)
			t.low[f] = min(t.low[f], t.low[c])
		case t.on[c]:
			t.low[f] = min(t.low[f], t.index[c])
			self = self || c == f
		}
	}
	if t.low[f] != t.index[f] {
		return
	}
	from := slices.Index(t.stack, f)
	group := slices.Clone(t.stack[from:])
	t.stack = t.stack[:from]
	for _, x := range group {
		t.on[x] = false
	}
	if len(group) > 1 || self {
		t.groups = append(t.groups, slices.DeleteFunc(group, func(x int32) bool { return int(x) == len(t.spends) }))
	}
}

// readCalls reads the calls of every function and what the table holds.
func readCalls(code, elements []byte, imports uint64) (*callGraph, error) {
	r := &reader{b: code}
	n := r.uleb()
	if n > uint64(len(code)) {
		return nil, errors.New("cut code section")
	}
	g := &callGraph{direct: make([][]int32, n), indirect: make([]bool, n), inTable: make([]bool, n)}
	for i := range n {
		body := &reader{b: r.bytes(int(r.uleb()))}
		if r.bad {
			return nil, errors.New("cut code section")
		}
		if err := g.readBody(int(i), body, imports); err != nil {
			return nil, err
		}
	}
	return g, g.readTable(elements, imports)
}

func (g *callGraph) readBody(f int, r *reader, imports uint64) error {
	r.locals()
	for r.p < len(r.b) {
		at := *r
		if err := r.skip(); err != nil {
			return err
		}
		switch at.byte() {
		case opCallIndirect:
			g.indirect[f] = true
		case opCall:
			if c := at.uleb(); c >= imports && c-imports < uint64(len(g.direct)) {
				g.direct[f] = append(g.direct[f], int32(c-imports))
			}
		}
	}
	return r.err()
}

// readTable reads the one element segment, which lists functions by number.
func (g *callGraph) readTable(elements []byte, imports uint64) error {
	r := &reader{b: elements}
	if r.uleb() != 1 || r.uleb() != 0 || r.byte() != opI32Const {
		return errors.New("unexpected element section")
	}
	r.sleb()
	if r.byte() != opEnd {
		return errors.New("unexpected element section")
	}
	for n := r.uleb(); n > 0 && !r.bad; n-- {
		if f := r.uleb(); f >= imports && f-imports < uint64(len(g.direct)) && !g.inTable[f-imports] {
			g.table, g.inTable[f-imports] = append(g.table, int32(f-imports)), true
		}
	}
	if r.bad {
		return errors.New("unexpected element section")
	}
	return nil
}
