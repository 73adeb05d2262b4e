// Package admit gives the API server's own verdict on manifests of the product's
// kinds, without a server.
package admit

import (
	"context"
	"fmt"
	"io/fs"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/codeact-dev/codeact-operator/config/crd"
)

// Kind gives the API server's own verdict on objects of one kind: its
// defaults, bounds and CEL rules, from the generated CRD and by its own code.
type Kind struct {
	structural *structuralschema.Structural
	openAPI    validation.SchemaValidator
	rules      *cel.Validator
}

// Kinds returns what every embedded CRD says, read once; the keys are kinds. The
// map is for reading only.
func Kinds() (map[string]*Kind, error) { return kinds() }

var kinds = sync.OnceValues(readKinds)

func readKinds() (map[string]*Kind, error) {
	out := map[string]*Kind{}
	files, err := fs.Glob(crd.Bases, "bases/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		text, err := fs.ReadFile(crd.Bases, name)
		if err != nil {
			return nil, err
		}
		var def apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &def); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if out[def.Spec.Names.Kind], err = newKindSchema(&def); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

func newKindSchema(def *apiextensionsv1.CustomResourceDefinition) (*Kind, error) {
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(def.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return nil, err
	}
	s, err := structuralschema.NewStructural(&props)
	if err != nil {
		return nil, err
	}
	v, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, err
	}
	return &Kind{structural: s, openAPI: v, rules: cel.NewValidator(s, true, celconfig.PerCallLimit)}, nil
}

// Admit fills in the defaults of obj and reports what the API server would
// refuse, unknown fields included: a manifest with a misspelt field is not what
// its author means.
func (k *Kind) Admit(ctx context.Context, obj map[string]any) error {
	unknown := pruning.PruneWithOptions(obj, k.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		return fmt.Errorf("unknown field %q", unknown[0])
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, k.structural)
	defaulting.Default(obj, k.structural)
	errs := validation.ValidateCustomResource(nil, obj, k.openAPI)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, obj)...)
	if len(errs) == 0 && k.rules != nil {
		more, _ := k.rules.Validate(ctx, nil, k.structural, obj, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, more...)
	}
	return errs.ToAggregate()
}
