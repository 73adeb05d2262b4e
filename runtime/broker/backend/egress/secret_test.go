package egress

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

func TestSecret(t *testing.T) {
	const token = `tok/+en "with" <odd>&%41 characters~`
	s := NewSecret(token)
	escaped, err := json.Marshal(token)
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(`{"a":` + string(escaped) + `}`)
	if err != nil {
		t.Fatal(err)
	}
	var wide strings.Builder
	for _, c := range []byte(token) {
		wide.WriteString(`\u00` + hex.EncodeToString([]byte{c}))
	}
	everyPercent := ""
	for _, c := range []byte(token) {
		everyPercent += "%" + strings.ToUpper(hex.EncodeToString([]byte{c}))
	}
	found := map[string]string{
		"raw": "x" + token + "y", "JSON": `{"a":` + string(escaped) + `}`, "every character escaped": `"` + wide.String() + `"`,
		"percent twice": strings.ReplaceAll(everyPercent, "%", "%25"), "JSON in JSON": string(again), "path": url.PathEscape(token), "percent": everyPercent,
		"JSON of percent": `"` + strings.ReplaceAll(everyPercent, "%", `\u0025`) + `"`,
		"hex":             hex.EncodeToString([]byte("ab" + token)), "upper hex": strings.ToUpper(hex.EncodeToString([]byte(token))),
	}
	for _, pre := range []string{"", "B", "Be", "Bea", "Bearer ", "Authorization: Bearer "} {
		for _, post := range []string{"", "\n", "12", "123"} {
			found["base64 "+pre+post] = base64.StdEncoding.EncodeToString([]byte(pre + token + post))
			found["base64url "+pre+post] = base64.RawURLEncoding.EncodeToString([]byte(pre + token + post))
		}
	}
	for name, text := range found {
		if !s.In([]byte(text)) {
			t.Errorf("%s: not found in %s", name, text)
		}
		if s.Clean(text) != "" {
			t.Errorf("%s: kept", name)
		}
	}
	for name, text := range map[string]string{
		"empty": "", "part": token[:len(token)-1], "other": `{"a":"\u0041\n\q%zz%4\"}`, "cut escape": `"\u00`, "lone": `\`,
		"base64 of a part": base64.StdEncoding.EncodeToString([]byte(token[:12])),
	} {
		if s.In([]byte(text)) || s.Clean(text) != text {
			t.Errorf("%s: found in %q", name, text)
		}
	}
	if NewSecret("short7c").In([]byte("short7c")) {
		t.Error("a credential of 7 bytes is looked for")
	}
	if !NewSecret("just8byt").In([]byte("Zjust8byt")) {
		t.Error("a credential of 8 bytes is not")
	}
	if (Secret{}).In([]byte("x")) {
		t.Error("the zero Secret finds something")
	}
}
