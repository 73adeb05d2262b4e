package sandbox

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// runUnchecked runs a program as Execute does, but without the static check:
// what keeps a program in must not depend on it.
func runUnchecked(t *testing.T, source string) (string, *contract.Fault) {
	t.Helper()
	e := testEngine(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	x := &execution{engine: e, limits: withDefaults(contract.Limits{}), caller: &hostileTools{}, parent: ctx, ctx: ctx}
	s, err := x.run(Program{Source: source, Input: json.RawMessage("null")}, true)
	if x.in != nil {
		defer x.in.close()
	}
	if err != nil {
		return "", x.faultOf(err)
	}
	return string(s), nil
}

// TestWithoutCheck: every forbidden construct that QuickJS would parse leads
// nowhere.
func TestWithoutCheck(t *testing.T) {
	tests := map[string]struct{ source, want string }{
		"names are absent":             {`function main(){return ["eval","Promise","WebAssembly","console","globalThis","std","os","bjson","performance","queueMicrotask"].filter(n => n in g)} const g=this`, `[]`},
		"typeof of the names":          {`function main(){return [typeof eval,typeof Promise,typeof WebAssembly,typeof console,typeof globalThis].join()}`, `"undefined,undefined,undefined,undefined,undefined"`},
		"eval has no body":             {`function main(){try{return eval("1")}catch(e){return e.name}}`, `"ReferenceError"`},
		"Function":                     {`function main(){try{return Function("return 1")()}catch(e){return e.name}}`, `"TypeError"`},
		"new Function":                 {`function main(){try{return new Function("return 1")()}catch(e){return e.name}}`, `"TypeError"`},
		"class extends Function":       {`function main(){class F extends Function{};try{return new F("return 1")()}catch(e){return e.name}}`, `"TypeError"`},
		"constructor of async":         {`function main(){try{return (async()=>1).constructor("return 1")}catch(e){return e.name}}`, `"TypeError"`},
		"constructor of async *":       {`function main(){try{return (async function*(){}).constructor("return 1")}catch(e){return e.name}}`, `"TypeError"`},
		"new.target of Function":       {`function main(){try{return Reflect.construct(Function,["return 1"],Object)}catch(e){return e.name}}`, `"TypeError"`},
		"a promise does nothing":       {`function main(){const p=(async()=>1)();return [typeof p.then,typeof p.constructor,Reflect.ownKeys(Object.getPrototypeOf(p)).map(String)]}`, `["undefined","undefined",["constructor","then"]]`},
		"its prototype is frozen":      {`function main(){const p=(async()=>1)();try{Object.getPrototypeOf(p).then=1;return "set"}catch(e){return e.name}}`, `"TypeError"`},
		"await never goes on":          {`const log=[];function main(){(async()=>{log.push(1);await 1;log.push(2)})();return log}`, `[1]`},
		"async generators yield none":  {`function main(){const g=(async function*(){yield 1})();return [typeof g.next,typeof g.return]}`, `["undefined","undefined"]`},
		"import() loads nothing":       {`const log=[];function main(){import("qjs:std").then;return typeof import("qjs:os").then}`, `"undefined"`},
		"Date by any way":              {`function main(){const out=[];for(const f of [()=>Date(),()=>new Date(),()=>new Date(...[]),()=>Reflect.construct(Date,[]),()=>new (class extends Date{})(),()=>Date.prototype.constructor(),()=>Date.apply(null,[1])])try{f();out.push("made")}catch(e){out.push(e.name)}return out.join()}`, `"TypeError,TypeError,TypeError,TypeError,TypeError,TypeError,TypeError"`},
		"Date.now and Math.random":     {`function main(){return [typeof Date.now,typeof Math.random]}`, `["undefined","undefined"]`},
		"the hidden Date":              {`function main(){return [new Date(0).constructor===Date,Object.getPrototypeOf(new Date(0)).constructor===Date,Date.prototype===Object.getPrototypeOf(new Date(5))]}`, `[true,true,true]`},
		"stack hooks":                  {`function main(){Error.prepareStackTrace=(e,s)=>s;const s=new Error("x").stack;return typeof s}`, `"string"`},
		"arguments.callee":             {`function main(){try{return typeof arguments.callee}catch(e){return e.name}}`, `"TypeError"`},
		"caller":                       {`function f(){return f.caller}function main(){try{return f()}catch(e){return e.name}}`, `"TypeError"`},
		"tools cannot be replaced":     {`"use strict";function main(){try{tools={}}catch(e){return e.name}}`, `"TypeError"`},
		"tools cannot be deleted":      {`function main(){try{delete g.tools}catch(e){return [e.name,"tools" in g]}} const g=this`, `["TypeError",true]`},
		"the bridge shows no source":   {`function main(){return tools.call.toString().includes("native code")}`, `true`},
		"the bridge is not a class":    {`function main(){try{new tools.call("echo",{})}catch(e){return e.name}}`, `"TypeError"`},
		"borrowed call":                {`function main(){const {call}=tools;return call("echo",{a:1})}`, `{"a":1}`},
		"Function.prototype.call lies": {`Function.prototype.call=function(){return "forged"};Function.prototype.bind=()=>"forged";Reflect.construct=()=>"forged";function main(){return [tools.call("echo",{a:1}),new Date(5).getTime()]}`, `[{"a":1},5]`},
		"descriptors are polluted":     {`Object.defineProperty(Object.prototype,"get",{value(){return 1}});function main(){try{tools.call("fail",{})}catch(e){return [e.message,e.code]}}`, `["no such thing","NotFound"]`},
		"setters on Error.prototype":   {`Object.defineProperty(Error.prototype,"code",{set(){throw 1}});function main(){try{tools.call("fail",{})}catch(e){return [e.message,e.code]}}`, `["no such thing","NotFound"]`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, fault := runUnchecked(t, tt.source)
			if fault != nil || !sameJSON(json.RawMessage(got), json.RawMessage(tt.want)) {
				t.Errorf("got %s %v, want %s", got, fault, tt.want)
			}
		})
	}
}
