package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// callFunc is a Caller made of a function.
type callFunc func(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error)

func (f callFunc) Call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	return f(ctx, name, args)
}

func answers(text string) Caller {
	return callFunc(func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(text), nil
	})
}

func failsWith(err error) Caller {
	return callFunc(func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return nil, err })
}

const callsTool = `function main(i){try{return tools.call("t",{a:1})}catch(e){return [e.name,e.code,e.message]}}`

func TestExecute(t *testing.T) {
	big := strings.Repeat("x", 300)
	tests := map[string]struct {
		program     Program
		caller      Caller
		wantValue   string
		wantReason  contract.Reason
		wantMessage string
		wantLine    int
	}{
		"no input is null":         {program: Program{Source: `function main(i){return [i]}`}, wantValue: `[null]`},
		"input is JSON text":       {program: Program{Source: `function main(i){return i}`, Input: json.RawMessage(`{"a":[1,"é",null]}`)}, wantValue: `{"a":[1,"é",null]}`},
		"input is not JSON":        {program: Program{Source: `function main(i){return i}`, Input: json.RawMessage(`{a:1}`)}, wantReason: contract.ReasonInvalidInput},
		"input has a NUL":          {program: Program{Source: `function main(i){return i}`, Input: json.RawMessage("\"a\x00b\"")}, wantReason: contract.ReasonInvalidInput},
		"input escapes a NUL":      {program: Program{Source: `function main(i){return [i, i.length]}`, Input: json.RawMessage(`"a\u0000b"`)}, wantValue: `["a\u0000b",3]`},
		"input is not UTF-8":       {program: Program{Source: `function main(i){return i}`, Input: json.RawMessage("\"\xff\"")}, wantReason: contract.ReasonInvalidInput},
		"input half a surrogate":   {program: Program{Source: `function main(i){return [i, i.length]}`, Input: json.RawMessage(`"\ud800"`)}, wantValue: `["\ud800",1]`},
		"source has a NUL":         {program: Program{Source: "function main(){return 1}\n// \x00"}, wantReason: contract.ReasonSyntaxError, wantLine: 2},
		"source is not UTF-8":      {program: Program{Source: "function main(){\n\nreturn '\xff'}"}, wantReason: contract.ReasonSyntaxError, wantLine: 3},
		"size before input":        {program: Program{Source: "function main( {", Input: json.RawMessage(`"` + big + `"`), Limits: contract.Limits{InputBytes: 100, SourceBytes: 10}}, wantReason: contract.ReasonSourceTooLarge},
		"input before syntax":      {program: Program{Source: "function main( {", Input: json.RawMessage(`"` + big + `"`), Limits: contract.Limits{InputBytes: 100}}, wantReason: contract.ReasonInputTooLarge},
		"only QuickJS can tell":    {program: Program{Source: `function main(){return /(/}`}, wantReason: contract.ReasonSyntaxError},
		"heap above the ceiling":   {program: Program{Source: callsTool, Limits: contract.Limits{HeapBytes: 65 << 20}}, wantReason: contract.ReasonLimitsTooHigh},
		"stack above the ceiling":  {program: Program{Source: callsTool, Limits: contract.Limits{StackBytes: 2 << 20}}, wantReason: contract.ReasonLimitsTooHigh},
		"smallest heap":            {program: Program{Source: `function main(){return 1}`, Limits: contract.Limits{HeapBytes: 1 << 20}}, wantValue: `1`},
		"heap too small to start":  {program: Program{Source: `function main(){return 1}`, Limits: contract.Limits{HeapBytes: 1}}, wantReason: contract.ReasonHeapExhausted},
		"smallest stack":           {program: Program{Source: `function main(){return [3,1,2].sort()}`, Limits: contract.Limits{StackBytes: 64 << 10}}, wantValue: `[1,2,3]`},
		"stack too small to start": {program: Program{Source: `function main(){return 1}`, Limits: contract.Limits{StackBytes: 1}}, wantReason: contract.ReasonStackExhausted},
		"no caller":                {program: Program{Source: callsTool}, wantReason: contract.ReasonToolNotAllowed},
		"tool answers":             {program: Program{Source: callsTool}, caller: answers(`{"b":2}`), wantValue: `{"b":2}`},
		"tool fails":               {program: Program{Source: callsTool}, caller: failsWith(contract.Faultf(contract.ReasonToolFailed, "no \"such\" thing")), wantValue: `["Error","ToolFailed","no \"such\" thing"]`},
		"tool fails, wrapped":      {program: Program{Source: callsTool}, caller: failsWith(errors.Join(errors.New("secret"), contract.Faultf(contract.ReasonInvalidArguments, "bad a"))), wantValue: `["Error","InvalidArguments","bad a"]`},
		"tool fails with a code":   {program: Program{Source: callsTool}, caller: failsWith(codedFailure{contract.Faultf(contract.ReasonToolFailed, "gone"), "E404"}), wantValue: `["Error","E404","gone"]`},
		"tool ends it":             {program: Program{Source: callsTool}, caller: failsWith(contract.Faultf(contract.ReasonEffectUncertain, "who knows")), wantReason: contract.ReasonEffectUncertain, wantMessage: "who knows"},
		"broker breaks":            {program: Program{Source: callsTool}, caller: failsWith(errors.New("token=secret")), wantReason: contract.ReasonBrokerUnavailable, wantMessage: "the tool could not be reached"},
		"broker panics": {program: Program{Source: callsTool}, caller: callFunc(func(context.Context, string, json.RawMessage) (json.RawMessage, error) { panic("token=secret") }),
			wantReason: contract.ReasonWorkerLost},
		"tool answers no JSON":   {program: Program{Source: callsTool}, caller: answers(`{`), wantReason: contract.ReasonChildResultInvalid},
		"tool answers a NUL":     {program: Program{Source: callsTool}, caller: answers("\"\x00\""), wantReason: contract.ReasonChildResultInvalid},
		"tool answers too much":  {program: Program{Source: callsTool, Limits: contract.Limits{OutputBytes: 200}}, caller: answers(`"` + big + `"`), wantReason: contract.ReasonChildResultTooLarge},
		"name too long":          {program: Program{Source: `function main(){return tools.call("x".repeat(1e6),{})}`}, caller: answers(`1`), wantReason: contract.ReasonToolNotAllowed},
		"arguments throw":        {program: Program{Source: `function main(){try{tools.call("t",{get a(){throw new RangeError("r")}})}catch(e){return [e.name,e.cause.name]}}`}, caller: answers(`1`), wantValue: `["TypeError","RangeError"]`},
		"error line":             {program: Program{Source: "function main(){\n\n  throw new RangeError('bad n');\n}"}, wantReason: contract.ReasonJavaScriptError, wantMessage: "RangeError: bad n", wantLine: 3},
		"error line of a call":   {program: Program{Source: "function main(i){\n\n  return JSON.parse('{');\n}"}, wantReason: contract.ReasonJavaScriptError, wantLine: 3},
		"error line of a tool":   {program: Program{Source: "function main(i){\n\n  return tools.call('t', {});\n}"}, caller: failsWith(contract.Faultf(contract.ReasonToolFailed, "gone")), wantReason: contract.ReasonJavaScriptError, wantMessage: "Error: gone", wantLine: 3},
		"error line not known":   {program: Program{Source: "function main(i){\n\n  return i.a.b;\n}", Input: json.RawMessage(`{}`)}, wantReason: contract.ReasonJavaScriptError, wantMessage: "TypeError: cannot read property 'b' of undefined (in main, at or after line 1)"},
		"result without JSON":    {program: Program{Source: `function main(){return {toJSON(){}}}`}, wantReason: contract.ReasonJavaScriptError},
		"promise by other means": {program: Program{Source: `function main(){return {then:()=>1}}`}, wantReason: contract.ReasonJavaScriptError},
		"main is replaced":       {program: Program{Source: `function main(){return 1} main=7`}, wantReason: contract.ReasonJavaScriptError},
		"hashbang":               {program: Program{Source: "#!/usr/bin/env codeact\nfunction main(){return 1}"}, wantValue: `1`},
		"byte order mark":        {program: Program{Source: "\uFEFFfunction main(){return 1}"}, wantValue: `1`},
	}
	e := testEngine(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			res, err := e.Execute(t.Context(), tt.program, tt.caller)
			if tt.wantReason == "" {
				if err != nil || !sameJSON(res.Value, json.RawMessage(tt.wantValue)) {
					t.Fatalf("value %s error %v, want %s", res.Value, err, tt.wantValue)
				}
				return
			}
			f, ok := contract.AsFault(err)
			if !ok || f.Reason != tt.wantReason {
				t.Fatalf("value %s error %v, want %s", res.Value, err, tt.wantReason)
			}
			if tt.wantMessage != "" && f.Message != tt.wantMessage {
				t.Errorf("message %q, want %q", f.Message, tt.wantMessage)
			}
			if tt.wantLine != 0 && f.Line != tt.wantLine {
				t.Errorf("line %d, want %d", f.Line, tt.wantLine)
			}
			if strings.Contains(f.Error(), "secret") || strings.ContainsAny(f.Message, "\n") {
				t.Errorf("unclean message %q", f.Message)
			}
		})
	}
}

func TestExecuteStops(t *testing.T) {
	const spins = `function main(){try{for(;;);}finally{for(;;);}}`
	fault := contract.Faultf(contract.ReasonDeadlineExceeded, "the run is over")
	tests := map[string]struct {
		context    func(context.Context) (context.Context, context.CancelFunc)
		source     string
		limits     contract.Limits
		wantReason contract.Reason
	}{
		"own limit": {source: spins, limits: contract.Limits{WallClockMs: 50}, wantReason: contract.ReasonTimeout},
		"cancelled": {source: spins, wantReason: contract.ReasonCancelled, context: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(20*time.Millisecond, cancel)
			return ctx, cancel
		}},
		"cancelled before the start": {source: `function main(){return 1}`, wantReason: contract.ReasonCancelled, context: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}},
		"deadline of the caller": {source: spins, wantReason: contract.ReasonTimeout, context: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 20*time.Millisecond)
		}},
		"cause is a fault": {source: spins, wantReason: fault.Reason, context: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(20*time.Millisecond, func() { cancel(fault) })
			return ctx, func() { cancel(nil) }
		}},
		"in a regular expression": {source: `function main(){return /^(z+)+$/.test("z".repeat(40)+"!")}`, limits: contract.Limits{WallClockMs: 50}, wantReason: contract.ReasonTimeout},
	}
	e := testEngine(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if tt.context != nil {
				ctx, cancel = tt.context(ctx)
			}
			defer cancel()
			_, err := e.Execute(ctx, Program{Source: tt.source, Limits: tt.limits}, nil)
			if f, ok := contract.AsFault(err); !ok || f.Reason != tt.wantReason {
				t.Fatalf("error %v, want %s", err, tt.wantReason)
			}
		})
	}
}

// TestPrecedence: a call that ends while the execution is cancelled is a
// cancelled execution, whatever the call says.
func TestPrecedence(t *testing.T) {
	for name, answer := range map[string]error{
		"success": nil, "failure": contract.Faultf(contract.ReasonToolFailed, "no"), "terminal": contract.Faultf(contract.ReasonEffectUncertain, "who knows"), "unknown": errors.New("no"),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := testEngine(t).Execute(ctx, Program{Source: callsTool}, callFunc(func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
				cancel()
				return json.RawMessage("1"), answer
			}))
			if f, ok := contract.AsFault(err); !ok || f.Reason != contract.ReasonCancelled {
				t.Fatalf("error %v, want Cancelled", err)
			}
		})
	}
}

// TestFreshAndDeterministic: nothing survives an execution, and the same
// program gives the same bytes.
func TestFreshAndDeterministic(t *testing.T) {
	src := `Object.prototype.left = 1; var n = (typeof n === "number" ? n : 0) + 1;
function main(){
  const s = new Set(), o = {};
  for (let k = 0; k < 500; k++) { s.add("k" + k * 7 % 500); o["p" + k * 3 % 500] = k; }
  return [n, [...s].join(), o, [5,3,9].sort(), new Date(0).toString(), (0.1).toLocaleString(), Object.keys(globals())];
}
const g = this;
function globals(){ const o = {}; for (const k of Object.getOwnPropertyNames(g)) o[k] = 1; return o }`
	e := testEngine(t)
	var first string
	for i := range 5 {
		res, err := e.Execute(t.Context(), Program{Source: src}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = string(res.Value)
		}
		if string(res.Value) != first || !strings.HasPrefix(first, "[1,") {
			t.Fatalf("run %d gave %.100s, the first %.100s", i, res.Value, first)
		}
	}
}

// TestGarbage: memory that only a cycle holds comes back long before the limit.
func TestGarbage(t *testing.T) {
	for name, source := range map[string]string{
		"buffers":  `function main(){for(let i=0;i<2000;i++){const o={b:new Uint8Array(100000)};o.self=o} return 1}`,
		"closures": `function main(){let n=0;for(let i=0;i<5000;i++){const text="x".repeat(20000)+i;const f=()=>f.length+text.length;n+=f()} return 1}`,
		"trees":    `function main(){for(let i=0;i<2000;i++){const rows=[];for(let k=0;k<50;k++)rows.push({k,parent:rows,text:"x".repeat(200)})} return 1}`,
	} {
		t.Run(name, func(t *testing.T) {
			res, err := testEngine(t).Execute(t.Context(), Program{Source: source}, nil)
			if err != nil || res.Usage.HeapBytes > 4<<20 {
				t.Errorf("usage %+v error %v, want a small heap", res.Usage, err)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	e := testEngine(t)
	two := `function main(){tools.call("t",{});tools.call("t",{});return 1}`
	res, err := e.Execute(t.Context(), Program{Source: two}, answers("1"))
	if err != nil || res.Usage.Calls != 2 || res.Usage.HeapBytes <= 0 || res.Usage.HeapBytes > 1<<20 {
		t.Errorf("usage %+v error %v, want two calls and a small heap", res.Usage, err)
	}
	res, err = e.Execute(t.Context(), Program{Source: `function main(){tools.call("t",{});const a=[];for(;;)a.push(new Uint8Array(1<<20))}`}, answers("1"))
	if err == nil || res.Usage.Calls != 1 || res.Usage.HeapBytes < 16<<20 || res.Usage.HeapBytes > 32<<20 {
		t.Errorf("usage %+v error %v, want one call and a full heap", res.Usage, err)
	}
}

// TestParallel runs many executions on one engine, some of them cancelled from
// another goroutine; each must see its own values only.
func TestParallel(t *testing.T) {
	e := testEngine(t)
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range rounds {
				in, _ := json.Marshal(map[string]int{"g": g, "i": i})
				res, err := e.Execute(t.Context(), Program{Source: `function main(i){return [i.g, i.i, tools.call("t", i).g]}`, Input: in},
					callFunc(func(_ context.Context, _ string, args json.RawMessage) (json.RawMessage, error) { return args, nil }))
				want, _ := json.Marshal([]int{g, i, g})
				if err != nil || string(res.Value) != string(want) {
					t.Errorf("value %s error %v, want %s", res.Value, err, want)
				}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(2*time.Millisecond, cancel)
				_, err = e.Execute(ctx, Program{Source: `function main(){for(;;);}`}, nil)
				cancel()
				if f, ok := contract.AsFault(err); !ok || f.Reason != contract.ReasonCancelled {
					t.Errorf("error %v, want Cancelled", err)
				}
			}
		})
	}
	wg.Wait()
}

// TestNested: a Caller may run another program; each keeps its own memory.
func TestNested(t *testing.T) {
	e := testEngine(t)
	inner := callFunc(func(ctx context.Context, _ string, args json.RawMessage) (json.RawMessage, error) {
		res, err := e.Execute(ctx, Program{Source: `function main(n){return n+1}`, Input: args}, nil)
		return res.Value, err
	})
	res, err := e.Execute(t.Context(), Program{Source: `function main(){return tools.call("t",1)+tools.call("t",10)}`}, inner)
	if err != nil || string(res.Value) != "13" {
		t.Errorf("value %s error %v, want 13", res.Value, err)
	}
}

func TestClose(t *testing.T) {
	e, err := New(t.Context(), Options{Ceiling: contract.Limits{HeapBytes: 32 << 20, StackBytes: 512 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := e.Execute(context.Background(), Program{Source: callsTool}, callFunc(func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			close(entered)
			<-leave
			return json.RawMessage("1"), nil
		}))
		done <- err
	}()
	<-entered
	closed := make(chan error, 1)
	go func() { closed <- e.Close(context.Background()) }()
	select {
	case err := <-closed:
		t.Errorf("Close did not wait for the running execution: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(leave)
	if err := <-done; err != nil {
		t.Errorf("the running execution failed: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	_, err = e.Execute(t.Context(), Program{Source: callsTool}, nil)
	if f, ok := contract.AsFault(err); !ok || f.Reason != contract.ReasonWorkerLost {
		t.Errorf("error %v after Close, want WorkerLost", err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Errorf("second Close: %v", err)
	}
}
