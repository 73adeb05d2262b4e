package recipe_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/recipe"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

const program = "function main(input) { return input }"

func texts(data map[string]string) map[string]*corev1.ConfigMap {
	return map[string]*corev1.ConfigMap{"code": {Data: data}}
}

func from() *builders.Recipe {
	return builders.MakeRecipe("tidy", "").SourceFrom("code", "main.js", contract.Digest([]byte(program)))
}

func fromSchema() *builders.Recipe {
	return builders.MakeRecipe("tidy", program).InputSchemaFrom("code", "input.json")
}

func TestDecideTexts(t *testing.T) {
	away := func(message string) want {
		return want{verb: recipe.VerbWait, reason: contract.ReasonSourceUnavailable, message: message, source: contract.ReasonSourceUnavailable}
	}
	unschema := func(reason contract.Reason, message string) want {
		return want{verb: recipe.VerbWait, reason: reason, message: message, schema: reason}
	}
	binary := map[string]*corev1.ConfigMap{"code": {BinaryData: map[string][]byte{"main.js": []byte(program)}}}
	run(t, map[string]test{
		"its ConfigMap holds the program": {recipe: from(), maps: texts(map[string]string{"main.js": program}), want: want{verb: recipe.VerbAccept}},
		"no ConfigMap":                    {recipe: from(), want: away("no ConfigMap code in this namespace; its key main.js")},
		"no key":                          {recipe: from(), maps: texts(nil), want: away("ConfigMap code has no key main.js")},
		"binary data":                     {recipe: from(), maps: binary, want: away("binary data")},
		"no UTF-8":                        {recipe: from(), maps: texts(map[string]string{"main.js": "\xff"}), want: away("not UTF-8")},
		"nothing":                         {recipe: from(), maps: texts(map[string]string{"main.js": ""}), want: away("is empty")},
		"far too much": {
			recipe: from(), maps: texts(map[string]string{"main.js": strings.Repeat("x", 262145)}), want: away("262145 bytes"),
		},
		"another program": {
			recipe: from(), maps: texts(map[string]string{"main.js": program + ";"}),
			want: want{verb: recipe.VerbWait, reason: contract.ReasonDigestMismatch, message: "key main.js of ConfigMap code", source: contract.ReasonDigestMismatch},
		},
		"what no ConfigMap can mend": {
			recipe: builders.MakeRecipe("tidy", "").SourceFrom("code", "main.js", contract.Digest([]byte("async"))),
			maps:   texts(map[string]string{"main.js": "async"}),
			want:   want{verb: recipe.VerbRefuse, reason: contract.ReasonJavaScriptError, source: contract.ReasonJavaScriptError},
		},
		"a schema":              {recipe: fromSchema(), maps: texts(map[string]string{"input.json": `{"type":"object"}`}), want: want{verb: recipe.VerbAccept}},
		"no schema":             {recipe: fromSchema(), want: unschema(contract.ReasonSourceUnavailable, "its key input.json")},
		"a schema of no JSON":   {recipe: fromSchema(), maps: texts(map[string]string{"input.json": `{`}), want: unschema(contract.ReasonSchemaInvalid, "is not JSON")},
		"a schema of no object": {recipe: fromSchema(), maps: texts(map[string]string{"input.json": `true`}), want: unschema(contract.ReasonSchemaInvalid, "no object")},
		"a schema that does not compile": {
			recipe: fromSchema(), maps: texts(map[string]string{"input.json": `{"type":7}`}), want: unschema(contract.ReasonSchemaInvalid, "key input.json of ConfigMap code"),
		},
		"a manifest that is too large": {
			recipe: builders.MakeRecipe("tidy", program).InputSchema(`{"description":"` + strings.Repeat("m", 65536) + `"}`),
			want:   want{verb: recipe.VerbRefuse, reason: contract.ReasonManifestTooLarge, message: "spec.inputSchemaFrom"},
		},
	})
}

// TestTextsDigests compares a recipe with ConfigMaps to the same one without.
func TestTextsDigests(t *testing.T) {
	settled := func(b *builders.Recipe, maps map[string]*corev1.ConfigMap) v1alpha1.RecipeStatus {
		s := recipe.Snapshot{Now: now, Recipe: b.Obj(), ConfigMaps: maps}
		return recipe.Settle(s, recipe.Decide(settings.Default(), s))
	}
	const schema = `{"type":"object","required":["n"]}`
	whole := settled(builders.MakeRecipe("tidy", program).SourceDigest(contract.Digest([]byte(program))).InputSchema(schema), nil)
	maps := texts(map[string]string{"main.js": program, "input.json": "{ \"required\": [\"n\"],\n \"type\": \"object\" }\n"})
	split := settled(from().InputSchemaFrom("code", "input.json"), maps)
	if split.ManifestDigest != whole.ManifestDigest || split.InputSchemaDigest != whole.InputSchemaDigest || split.SourceDigest != whole.SourceDigest {
		t.Errorf("digests %+v, want those of %+v", split, whole)
	}
	if none := settled(from().InputSchemaFrom("code", "input.json"), nil); none.SourceDigest+none.InputSchemaDigest+none.ManifestDigest != "" {
		t.Errorf("digests of texts that are not there: %+v", none)
	}
	if c := meta.FindStatusCondition(settled(from(), nil).Conditions, v1alpha1.ConditionStalled); c != nil {
		t.Errorf("stalled, but a ConfigMap can mend it: %s", c.Message)
	}
}
