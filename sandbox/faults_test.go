package sandbox

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TestFaults holds the faults of the pinned engine that are repaired or removed.
// An upstream is named by its commit or issue; "own" is not known upstream. The
// programs run without the static check, which would refuse some of them first.
func TestFaults(t *testing.T) {
	const tries = `const t=(f)=>{try{return f()}catch(e){return e.name}};`
	tests := map[string]struct{ upstream, source, want string }{
		"BigInt and negative number": {"own", `function main(){const b=-(2n**70n);return [-1n < -5.5, -1n > -5.5, -5n < -1e20, -5.5 < -1n, b < -(2**60), b > -(2**80), b == -(2**70), -7n <= -6.5, 5n < 7.5, 2n**70n < 2**80]}`,
			`[false,true,false,true,true,true,true,true,true,true]`},
		"BigInt.asUintN": {"quickjs-ng b51e527", tries + `function main(){const s=(b,v)=>t(()=>String(BigInt.asUintN(b,v)));return [s(64,-1n),s(64,-2n),s(8,-1n),s(128,-1n),s(64,-(1n<<64n)),s(65,-1n),s(0,-1n),s(8,257n),s(64,123n),s("8","-1"),s(-1,1n),s(8,1),s(2**53,1n)]}`,
			`["18446744073709551615","18446744073709551614","255","340282366920938463463374607431768211455","0","36893488147419103231","0","1","123","255","RangeError","TypeError","RangeError"]`},
		"a date with a zero": {"bellard/quickjs 2161640", `function main(){return [Date.parse("2345-00"),Date.parse("1122-07-00"),new Date("2345-00-07").getTime(),new Date({toString:()=>"2024-00"}).getTime(),Date.parse("2024-05-06"),new Date("2024-05-06").getTime(),new Date(new Date(7)).getTime(),new Date({valueOf:()=>9}).getTime(),new Date({[Symbol.toPrimitive]:(h)=>h}).getTime(),Date.parse("10 May 2020 00:00 GMT")]}`,
			`[null,null,null,null,1714953600000,1714953600000,7,9,null,1589068800000]`},
		"suspended generator": {"quickjs-ng 7955cfd", `let leak;function main(){(function(){let g;function* gen(){const o={tag:"alive"};o.g=g;leak=()=>o;yield;o.tag="resumed";yield 5}g=gen();g.next();g=null})();` +
			`for(let i=0;i<60000;i++){const a={};a.a=a;a.s="x".repeat(100)+i}const o=leak();return [o.tag,typeof o.g,o.g.next().value,o.tag]}`,
			`["alive","object",5,"resumed"]`},
		"generator not yet begun": {"quickjs-ng 7955cfd", `let leak;function main(){(function(){let g;function* gen(a=(leak=()=>b,1),b={tag:"alive"}){yield b.tag}g=gen();leak().g=g;g=null})();` +
			`for(let i=0;i<60000;i++){const a={};a.a=a;a.s="x".repeat(100)+i}return [leak().tag,leak().g.next().value]}`,
			`["alive","alive"]`},
		"proxy with many keys": {"quickjs-ng 252209d", tries + `function main(){const p=(n)=>new Proxy({},{ownKeys:()=>new Proxy({},{get:(o,k)=>k==="length"?n:"k"+String(k)})});return [0x20000001,0x40000000,0xffffffff].map(n=>t(()=>Object.keys(p(n)).length)).concat(Reflect.ownKeys(p(3)))}`,
			`["InternalError","InternalError","InternalError","k0","k1","k2"]`},
		"copies of array-likes": {"quickjs-ng 64e64eb a653771", tries + `function main(){const c=(m,...a)=>t(()=>Array.prototype[m].apply(...a));const o={length:3,0:"a",2:"c"};return [c("toReversed",o),c("toSorted",[3,,1]),c("toSpliced",o,[1,1,"x","y"]),c("toSpliced",[1,2],[]),c("toSpliced",[1,2,3],[1]),c("with",o,[-1,"z"]),c("with",[1],[1,0]),c("toReversed",{length:2**32}),c("toSpliced",{length:2**53-1},[0,0,1]),c("toSorted",[1],[null]),t(()=>Array.prototype.with.call(null))]}`,
			`[["c",null,"a"],[1,3,null],["a","x","y","c"],[1,2],[1],["a",null,"z"],"RangeError","RangeError","TypeError","TypeError","TypeError"]`},
		"a getter in a copy": {"bellard/quickjs 4c722ce", `function main(){const a=[];for(let i=0;i<100;i++)Object.defineProperty(a,i,{get(){for(let j=0;j<600;j++){const c={};c.c=c}return {i}}});const r=[a.toReversed(),a.toSpliced(1,1),a.with(0,7)];return [r[0][0].i,r[1][98].i,r[2][0],r[2][99].i]}`,
			`[99,99,7,99]`},
		"copies and setters": {"", `Object.defineProperty(Array.prototype,0,{set(){throw 1},configurable:true});Array.prototype[Symbol.iterator]=()=>{throw 2};Object.prototype.get=()=>3;function main(){const a={length:2,0:5,1:6};return Array.prototype.toReversed.call(a).length+"/"+Array.prototype.with.call(a,0,7)[0]}`,
			`"2/7"`},
		"buffers stay where they are": {"quickjs-ng c952c93 2f6cad8 c5d8083 53aebe6 53eefbc e6e4e76", tries + `function main(){const rab=(n,m)=>new ArrayBuffer(n,{maxByteLength:m});const b=rab(8,16),u=new Uint8Array(b);u[7]=5;b.resize(16);const grown=[u.length,u[7],u[15]];u[15]=9;b.resize(4);b.resize(16);const c=rab(256,2560),v=new Uint8Array(c).map((x,i)=>255-i),w=new Uint8Array(c);w.set(v);w.sort((x,y)=>{c.resize(10);return x-y});const d=rab(4096,4096),x=new Int32Array(d).fill(7);const y=t(()=>x.with(0,{valueOf(){d.resize(4);return 9}}).length);const evil=function(){}.bind();const f=rab(10,10);Object.defineProperty(evil,"prototype",{get(){f.resize(0);return Uint8Array.prototype}});` +
			`return [typeof b.transfer,b.resizable,b.maxByteLength,grown,u[15],w.length,Math.max(...w),y,t(()=>Reflect.construct(Uint8Array,[f],evil).length>=0),t(()=>rab(9,8)),t(()=>rab(1,2**53)),t(()=>new ArrayBuffer(-1)),t(()=>ArrayBuffer(8)),b.constructor===ArrayBuffer,new Uint8Array(2).buffer instanceof ArrayBuffer,new (class X extends ArrayBuffer{})(5).slice(1).byteLength,ArrayBuffer.isView(u),ArrayBuffer[Symbol.species]===ArrayBuffer,new ArrayBuffer(3,{}).resizable,ArrayBuffer.length]}`,
			`["undefined",true,16,[16,5,0],0,10,9,1024,true,"RangeError","RangeError","RangeError","TypeError",true,true,4,true,true,false,1]`},
		"typed arrays": {"", tries + `function main(){const s=(T,a,f)=>[...new T(a).sort(f)].map(String);return [s(Float64Array,[3,-0,1],(x,y)=>y-x),s(Uint8Array,[3,1,2]),s(BigInt64Array,[3n,-1n],(x,y)=>x<y?-1:1),[...new Uint8Array([1,2]).with(-1,300)],String(new BigUint64Array([1n]).with(0,-1n)),t(()=>new BigInt64Array(1).with(0,1)),t(()=>new Uint8Array(1).with(1,1)),t(()=>Uint8Array.prototype.sort.call([],()=>0)),t(()=>new Uint8Array(1).sort(1)),Uint8Array.prototype.sort.length]}`,
			`[["3","1","0"],["1","2","3"],["-1","3"],[1,44],"18446744073709551615","TypeError","RangeError","TypeError","TypeError",1]`},
		"Iterator.concat": {"quickjs-ng daab4ad 25b5e70", `function main(){return typeof Iterator.concat}`, `"undefined"`},
		"iterator helpers": {"quickjs-ng d950d55 fced162 4afe458", tries + `function main(){const v=()=>[1,2,3,4].values();const src=(log)=>({__proto__:Iterator.prototype,next:()=>({done:false,value:1}),return(){log.push("closed");return {}}});const log=[];const h=src(log).map(x=>x);h.next();h.return();h.return();src(log).take(1).toArray();t(()=>src(log).map(()=>{throw 1}).next());t(()=>src(log).take(-1));
return [v().filter(x=>x>1).take(1).toArray(),v().map(x=>x*2).take(2).toArray(),v().drop(1).take(2).toArray(),v().flatMap(x=>[x,x*10]).take(3).toArray(),v().filter(x=>x%2===0).map((x,i)=>x+i).toArray(),v().find(x=>x>2),log,v().map(x=>x).return(),t(()=>v().take(2**53)),t(()=>v().drop(NaN)),t(()=>v().map(1)),t(()=>v().map(x=>x).next.call({})),Object.prototype.toString.call(v().map(x=>x))]}`,
			`[[2],[2,4],[2,3],[1,10,2],[2,5],3,["closed","closed","closed","closed"],{"done":true},"RangeError","RangeError","TypeError","TypeError","[object Iterator Helper]"]`},
		"iterator helpers keep nothing": {"quickjs-ng 98ee597 3c8f3d6 947e6b0", `function main(){let n=0;for(let k=0;k<3000;k++){const v=()=>["x".repeat(20000)+k].values();v().map(x=>1).toArray();v().filter(x=>0).toArray();n+=v().find(x=>x).length>0}return n}`, `3000`},
		"set methods": {"", tries + `function main(){const s=(...a)=>new Set(a),a=(x)=>[...x];const like={size:2,has:(x)=>x===1,keys:()=>[1,9,-0].values()};return [a(s(1,2).union(s(2,3))),a(s(1,2,3).intersection(s(3,1))),a(s(3,1).intersection(s(1,2,3))),a(s(1,2,3).difference(s(2))),a(s(1,2).difference(s(2,3,4))),a(s(1,2).symmetricDifference(s(2,3))),a(s(1).union(like)),a(s(1,2).intersection(like)),a(s(1,2,9).difference(like)),t(()=>s().union([1])),t(()=>s().union({size:-1})),t(()=>Set.prototype.union.call([],s())),s(1).union(s(2)) instanceof Set,Set.prototype.union.length]}`,
			`[[1,2,3],[3,1],[3,1],[1,3],[1],[1,3],[1,9,0],[1],[2],"TypeError","RangeError","TypeError",true,1]`},
		"set methods keep nothing": {"quickjs-ng 6d9bfbd", `function main(){let n=0;for(let k=0;k<1500;k++){const b="x".repeat(20000)+k,s=new Set([b]);n+=s.union(new Set([1])).size+s.symmetricDifference(new Set([1])).size+s.intersection(new Set([b])).size+s.difference(new Set([1])).size}return n}`, `9000`},
		"RegExp.prototype.compile": {"", `function main(){return typeof /a/.compile}`, `"undefined"`},
		"the flag v": {"quickjs-ng 5f2fb55", tries + `function main(){return [t(()=>new RegExp("a","v")),t(()=>RegExp("a","gv")),t(()=>new RegExp(/a/,"v")),t(()=>new RegExp({[Symbol.match]:true,source:"a",flags:"v"}))]}`,
			`["SyntaxError","SyntaxError","SyntaxError","SyntaxError"]`},
		"old captures": {"bellard/quickjs 24379bf", tries + `function main(){return ["(?:(a)|b)*","(?:(?:(?<n>a)|b)c){2}","(?:a|(b)){0,2}?","(?:(?=(a)|b).)+","(?:(a)|b)?","(?:(?:(a)|b)?c)*","(a|b)+","[(|](?:\\)(a)|b)","(?:(a)|b){1}"].map(s=>t(()=>new RegExp(s).test("")))}`,
			`["SyntaxError","SyntaxError","SyntaxError","SyntaxError",true,true,false,false,false]`},
		"letter case properties": {"own", tries + `function main(){return [["\\p{Lu}","iu"],["a\\P{gc=Ll}","ui"],["\\p{Uppercase}","iu"],["\\p{CWL}","iu"],["[\\p{Lu}]","iu"],["\\p{Lu}","u"],["\\p{L}","iu"]].map(([s,f])=>t(()=>new RegExp(s,f).test("a")))}`,
			`["SyntaxError","SyntaxError","SyntaxError","SyntaxError",true,false,true]`},
		"RegExp is what it was": {"", `function main(){const r=/a/g;class R extends RegExp{};const x=new R("a(?<n>b)","dg");return [RegExp(r)===r,new RegExp(r)!==r,RegExp(r,"i").flags,r.constructor===RegExp,x instanceof R,x.exec("ab").groups.n,"aXb".split(new RegExp("x","i")),[..."a1b2".matchAll(new R("\\d","g"))].length,RegExp[Symbol.species]===RegExp,RegExp.escape("a+").length,RegExp.length,RegExp.name,new RegExp().source,new RegExp(undefined,undefined).flags]}`,
			`[true,true,"i",true,true,"b",["a","b"],2,true,6,2,"RegExp","(?:)",""]`},
		"replacements look built in": {"", tries + `function main(){const f=[Date,Date.parse,ArrayBuffer,RegExp,BigInt.asUintN,Function,Function.prototype.toString,Array.prototype.with,Array.prototype.toSpliced];return [f.every(x=>x.toString()==="function "+x.name+"() {\n    [native code]\n}"),f.map(x=>x.length),t(()=>new Array.prototype.with(0,1)),"prototype" in Date.parse,(function(){return 1}).toString(),t(()=>Function.prototype.toString.call({})),Object.keys(Array.prototype).length,Set.prototype.union.toString()===[].values().map.toString().replace("map","union")]}`,
			`[true,[7,1,1,2,2,0,0,2,2],"TypeError",false,"function(){return 1}","TypeError",0,true]`},
		"after tampering": {"", `WeakMap.prototype.get=WeakMap.prototype.has=()=>{throw 1};RegExp.prototype.exec=()=>{throw 2};String.prototype.slice=()=>{throw 3};Math.max=()=>{throw 4};Reflect.construct=()=>{throw 5};BigInt.asIntN=()=>{throw 6};Object.setPrototypeOf=()=>{throw 7};Array.prototype.sort=()=>{throw 8};Object.getOwnPropertyDescriptor=()=>{throw 9};Reflect.apply=()=>{throw 10};Set.prototype.add=()=>{throw 11};Array.prototype[Symbol.iterator]=()=>{throw 12};` +
			`function main(){return [Date.parse("2024-00"),new Date("2024-00").getTime(),new RegExp("(a)+").source,Date.toString().length>0,new ArrayBuffer(3).byteLength,String(BigInt.asUintN(8,-1n)),[2,1].toSorted(),new Map().values().map(x=>x).next().done,new Set().union(new Set()).size]}`,
			`[null,null,"(a)+",true,3,"255",[1,2],true,0]`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, fault := runUnchecked(t, tt.source)
			if fault != nil || !sameJSON(json.RawMessage(got), json.RawMessage(tt.want)) {
				t.Errorf("%s: got %s %v, want %s", tt.upstream, got, fault, tt.want)
			}
		})
	}
}

// TestSetterInStringify: for an object the engine's JSON.stringify calls what a
// program sets on Array.prototype. That is a failure of the program, never of
// the sandbox.
func TestSetterInStringify(t *testing.T) {
	const hook = `Object.defineProperty(Array.prototype,0,{set(){throw new RangeError("set")}});`
	for _, body := range []string{`throw new Error("x")`, `return [1]`, `return {a:1}`, `return tools.call("t",{})`, `throw {a:1}`} {
		_, err := testEngine(t).Execute(t.Context(), Program{Source: hook + "function main(){" + body + "}"}, answers(`1`))
		if f, ok := contract.AsFault(err); !ok || f.Reason != contract.ReasonJavaScriptError {
			t.Errorf("%s: error %v, want %s", body, err, contract.ReasonJavaScriptError)
		}
	}
}

// TestRepairsAreBounded: a replacement that is asked for too much ends as the
// built-in does, and no catch sees it.
func TestRepairsAreBounded(t *testing.T) {
	tests := map[string]struct {
		source string
		want   contract.Reason
	}{
		"toReversed": {`function main(){try{return Array.prototype.toReversed.call({length:2**29+1}).length}catch(e){return 0}}`, contract.ReasonHeapExhausted},
		"toSpliced":  {`function main(){try{return [].toSpliced.call({length:2**31+1},0,0).length}catch(e){return 0}}`, contract.ReasonHeapExhausted},
		"no heap":    {`function main(){const p=new Proxy({length:2**32-1},{get:(o,k)=>k==="length"?2**32-1:undefined});try{for(;;)[].with.call(p,0,1)}catch(e){return 0}}`, contract.ReasonTimeout},
	}
	e := testEngine(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := e.Execute(t.Context(), Program{Source: tt.source, Limits: contract.Limits{WallClockMs: 20_000}}, nil)
			if f, ok := contract.AsFault(err); !ok || f.Reason != contract.ReasonHeapExhausted && f.Reason != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

// TestRepairRefuses: a function that is not the one that was examined is not
// changed.
func TestRepairRefuses(t *testing.T) {
	for _, x := range repairs {
		for name, body := range map[string][]byte{"gone": {0, opEnd}, "twice": append(append([]byte{0}, x.old...), x.old...)} {
			if _, err := repairBody(x.function, body); err == nil || !strings.Contains(err.Error(), "place of a repair") {
				t.Errorf("function %d, %s: error %v", x.function, name, err)
			}
		}
	}
}
