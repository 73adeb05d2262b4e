package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// command runs one command line in a folder with the given files.
func command(t *testing.T, files map[string]string, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var o, e bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(stdin), &o, &e)
	return code, o.String(), e.String()
}

func TestExecJSON(t *testing.T) {
	const tools = `{"echo":{"echo":true},"fail":{"fails":{"message":"no such record"}},"ask":{"approval":true},"strict":{"echo":true,"inputSchema":{"type":"object"}},"lose":{"uncertain":true,"receipt":"r-1"}}`
	tests := map[string]struct {
		source   string
		input    string
		limits   []string
		wantCode int
		want     execResult
	}{
		"a value": {
			source: `function main(i){return {n:i.n+1,s:"<&>"}}`, input: `{"n":1}`,
			want: execResult{Status: "ok", Value: json.RawMessage(`{"n":2,"s":"<&>"}`), Calls: []execCall{}},
		},
		"null is a value": {
			source: `function main(i){return i}`,
			want:   execResult{Status: "ok", Value: json.RawMessage(`null`), Calls: []execCall{}},
		},
		"input from a file": {
			source: `function main(i){return i}`, input: "@input.json",
			want: execResult{Status: "ok", Value: json.RawMessage(`[1,2]`), Calls: []execCall{}},
		},
		"calls": {
			source: `function main(){tools.call("echo",1);try{tools.call("strict",1)}catch(e){}try{tools.call("fail",{})}catch(e){return e.message}}`,
			want: execResult{
				Status: "ok", Value: json.RawMessage(`"no such record"`),
				Calls: []execCall{{Seq: 1, Tool: "echo", Outcome: "Completed"}, {Seq: 0, Tool: "strict", Outcome: "InvalidArguments"}, {Seq: 2, Tool: "fail", Outcome: "ToolFailed"}},
				Usage: contract.Usage{ChildCalls: 2, Tools: []contract.ToolUsage{
					{Name: "echo", Calls: 1, ArgumentBytes: 1, ResultBytes: 1}, {Name: "fail", Calls: 1, ArgumentBytes: 2},
				}},
			},
		},
		"a call that leaves something": {
			source: `function main(){tools.call("lose",{})}`, wantCode: exitFailed,
			want: execResult{
				Status: "error", Reason: contract.ReasonEffectUncertain, Calls: []execCall{{Seq: 1, Tool: "lose", Outcome: "EffectUncertain", Receipt: "r-1"}},
				Evidence: json.RawMessage(`{"seq":1,"tool":"lose","reason":"EffectUncertain","receipt":"r-1"}`),
				Usage:    contract.Usage{ChildCalls: 1, Tools: []contract.ToolUsage{{Name: "lose", Calls: 1, ArgumentBytes: 2}}},
			},
		},
		"a mistake": {
			source: "function main(){\n  return (1;\n}", wantCode: exitFailed,
			want: execResult{Status: "error", Reason: contract.ReasonSyntaxError, Line: 2, Calls: []execCall{}},
		},
		"a terminal call": {
			source: `function main(){try{tools.call("ask",{})}catch(e){}return 1}`, wantCode: exitFailed,
			want: execResult{Status: "error", Reason: contract.ReasonApprovalRequired, Calls: []execCall{{Seq: 0, Tool: "ask", Outcome: "ApprovalRequired"}}},
		},
		"input that is not JSON": {
			source: `function main(){return 1}`, input: "{", wantCode: exitFailed,
			want: execResult{Status: "error", Reason: contract.ReasonInvalidInput, Calls: []execCall{}},
		},
		"a lower limit": {
			source: `function main(){return "xxxx"}`, limits: []string{"outputBytes=3"}, wantCode: exitFailed,
			want: execResult{Status: "error", Reason: contract.ReasonOutputTooLarge, Calls: []execCall{}},
		},
		"higher limits": {
			source: `function main(){return "x".repeat(300000).length+new Uint8Array(40<<20).length}`, limits: []string{"heapBytes=67108864", "outputBytes=1048576"},
			want: execResult{Status: "ok", Value: json.RawMessage(`42243040`), Calls: []execCall{}},
		},
		"no calls allowed": {
			source: `function main(){return tools.call("echo",1)}`, limits: []string{"childCalls=0"}, wantCode: exitFailed,
			want: execResult{Status: "error", Reason: contract.ReasonCallLimitExceeded, Calls: []execCall{{Seq: 0, Tool: "echo", Outcome: "CallLimitExceeded"}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			args := []string{"exec", "--source", "p.js", "--tools", "tools.json", "-o", "json"}
			if tc.input != "" {
				args = append(args, "--input", tc.input)
			}
			for _, l := range tc.limits {
				args = append(args, "--limit", l)
			}
			code, out, errs := command(t, map[string]string{"p.js": tc.source, "tools.json": tools, "input.json": "[1,2]"}, "", args...)
			if code != tc.wantCode || errs != "" {
				t.Errorf("exit code %d, want %d; stderr %q", code, tc.wantCode, errs)
			}
			d := json.NewDecoder(strings.NewReader(out))
			d.DisallowUnknownFields()
			var got execResult
			if err := d.Decode(&got); err != nil {
				t.Fatalf("%v in %q", err, out)
			}
			ignore := cmpopts.IgnoreFields(execResult{}, "Message", "Column", "Usage.WallMs", "Usage.HeapBytes", "Usage.Fuel")
			if diff := cmp.Diff(tc.want, got, ignore, cmpopts.IgnoreFields(contract.ToolUsage{}, "WallMs")); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if (got.Message != "") != (got.Status == "error") {
				t.Errorf("message %q", got.Message)
			}
		})
	}
}

func TestExecUsage(t *testing.T) {
	files := map[string]string{"p.js": "function main(){return 1}", "bad.json": `{"a":{}}`}
	tests := map[string][]string{
		"no subcommand":      {},
		"unknown subcommand": {"exce"},
		"no source":          {"exec"},
		"no such source":     {"exec", "--source", "absent.js"},
		"no such input":      {"exec", "--source", "p.js", "--input", "@absent.json"},
		"no such stubs":      {"exec", "--source", "p.js", "--tools", "absent.json"},
		"bad stubs":          {"exec", "--source", "p.js", "--tools", "bad.json"},
		"unknown limit":      {"exec", "--source", "p.js", "--limit", "heap=1"},
		"limit without =":    {"exec", "--source", "p.js", "--limit", "heapBytes"},
		"limit of text":      {"exec", "--source", "p.js", "--limit", "heapBytes=many"},
		"limit of nothing":   {"exec", "--source", "p.js", "--limit", "heapBytes=0"},
		"limit out of reach": {"exec", "--source", "p.js", "--limit", "heapBytes=9999999999999"},
		"unknown format":     {"exec", "--source", "p.js", "-o", "yaml"},
		"unknown flag":       {"exec", "--source", "p.js", "--loud"},
		"one argument more":  {"exec", "--source", "p.js", "x"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			code, _, errs := command(t, files, "", args...)
			if code != exitUsage || !strings.HasPrefix(errs, "codeact: ") {
				t.Errorf("exit code %d, stderr %q", code, errs)
			}
		})
	}
}

func TestExecText(t *testing.T) {
	code, out, _ := command(t, map[string]string{"tools.json": `{"echo":{"echo":true}}`},
		`function main(){return tools.call("echo",{a:1})}`, "exec", "--source", "-", "--tools", "tools.json")
	want := "{\n  \"a\": 1\n}\n\ncalls:\n  1  echo  Completed\n\nused: "
	if code != exitOK || !strings.HasPrefix(out, want) {
		t.Errorf("exit code %d, output %q", code, out)
	}
	code, out, _ = command(t, nil, `function main(){try{tools.call("a\x1b]0;b\nc",{})}catch(e){}throw new Error("\x1b[2J\x9b\u202e\r")}`, "exec", "--source", "-")
	want = "error: ToolNotAllowed: "
	if code != exitFailed || !strings.HasPrefix(out, want) || !strings.Contains(out, `-  a\u001b]0;b\u000ac  ToolNotAllowed`) || strings.ContainsAny(out, "\x1b\r") {
		t.Errorf("exit code %d, output %q", code, out)
	}
	code, out, _ = command(t, nil, `function main(){return "\x1b[2J\x9b\u202e"}`, "exec", "--source", "-")
	if code != exitOK || !strings.HasPrefix(out, `"\u001b[2J\u009b\u202e"`+"\n") {
		t.Errorf("exit code %d, output %q", code, out)
	}
	code, out, _ = command(t, nil, "function main(){\n return eval('1')}", "exec", "--source", "-")
	if code != exitFailed || !strings.HasPrefix(out, "error: Prohibited: ") || !strings.Contains(out, "\n  at line 2, column ") {
		t.Errorf("exit code %d, output %q", code, out)
	}
}
