package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/admit"
)

// maxManifestBytes bounds one manifest file.
const maxManifestBytes = 16 << 20

// manifests are the objects of a local run.
type manifests struct {
	run        *v1alpha1.AgentRun
	recipes    []v1alpha1.Recipe
	grants     []v1alpha1.ToolGrant
	secrets    map[string]map[string][]byte // by name
	configMaps []corev1.ConfigMap
	// namespaces are the labels of those that the files hold.
	namespaces map[string]map[string]string
}

// loader reads manifests as the API server would.
type loader struct {
	ctx     context.Context
	schemas map[string]*admit.Kind
	seen    map[string]string // kind/namespace/name -> file
	m       manifests
}

// load reads every file; - is the standard input. Objects of other kinds than
// AgentRun, Recipe, ToolGrant, ConfigMap, Secret and Namespace are passed over: the files are often
// those of a whole deployment.
func load(ctx context.Context, files []string, in io.Reader) (*manifests, error) {
	m, err := loadAny(ctx, files, in)
	if err != nil {
		return nil, err
	}
	if m.run == nil {
		return nil, errors.New("the files hold no AgentRun")
	}
	m.settleNamespaces()
	return m, nil
}

// loadAny reads every file, whether there is a run in them or not.
func loadAny(ctx context.Context, files []string, in io.Reader) (*manifests, error) {
	schemas, err := admit.Kinds()
	if err != nil {
		return nil, err
	}
	l := &loader{ctx: ctx, schemas: schemas, seen: map[string]string{}, m: manifests{
		secrets: map[string]map[string][]byte{}, namespaces: map[string]map[string]string{},
	}}
	for _, f := range files {
		text, err := readFile(f, in)
		if err != nil {
			return nil, err
		}
		if err := l.file(f, text); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
	}
	return &l.m, nil
}

func readFile(name string, in io.Reader) ([]byte, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxManifestBytes+1))
	if err == nil && len(text) > maxManifestBytes {
		err = fmt.Errorf("%s has more than %d bytes", name, maxManifestBytes)
	}
	return text, err
}

func (l *loader) file(name string, text []byte) error {
	r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", n, err)
		}
		obj := map[string]any{}
		js, err := yaml.YAMLToJSONStrict(doc)
		if err == nil && string(bytes.TrimSpace(js)) == "null" {
			continue
		}
		if err == nil {
			obj, err = decodeObject(js)
		}
		if err == nil {
			err = l.object(name, obj)
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", n, err)
		}
	}
}

// decodeObject reads an object with whole numbers as int64, as the API server does.
func decodeObject(js []byte) (map[string]any, error) {
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(js); err != nil {
		return nil, errors.New("not a Kubernetes object: apiVersion and kind are needed")
	}
	if u.IsList() {
		return nil, errors.New("lists are not read: separate the objects with ---")
	}
	return u.Object, nil
}

func (l *loader) object(file string, obj map[string]any) error {
	u := unstructured.Unstructured{Object: obj}
	what := fmt.Sprintf("%s %s", u.GetKind(), u.GetName())
	ours := u.GroupVersionKind().Group == v1alpha1.GroupVersion.Group
	if !ours && (u.GetAPIVersion() != "v1" || !slices.Contains([]string{"Secret", "Namespace", "ConfigMap"}, u.GetKind())) {
		return nil
	}
	if errs := validation.IsDNS1123Subdomain(u.GetName()); len(errs) > 0 {
		return fmt.Errorf("%s: metadata.name: %s", what, errs[0])
	}
	key := u.GetKind() + "/" + u.GetNamespace() + "/" + u.GetName()
	if at, twice := l.seen[key]; twice {
		return fmt.Errorf("%s stands in %s already", what, at)
	}
	l.seen[key] = file
	if ours {
		k := l.schemas[u.GetKind()]
		if k == nil || u.GroupVersionKind().Version != v1alpha1.GroupVersion.Version {
			return fmt.Errorf("%s: there is no such kind in %s", what, u.GetAPIVersion())
		}
		unstructured.RemoveNestedField(obj, "status")
		if err := k.Admit(l.ctx, obj); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if err := l.keep(&u); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (l *loader) keep(u *unstructured.Unstructured) error {
	into := func(x any) error { return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, x) }
	switch u.GetKind() {
	case "AgentRun":
		if l.m.run != nil {
			return errors.New("a local run has exactly one AgentRun")
		}
		l.m.run = &v1alpha1.AgentRun{}
		return into(l.m.run)
	case "Recipe":
		var r v1alpha1.Recipe
		err := into(&r)
		l.m.recipes = append(l.m.recipes, r)
		return err
	case "ToolGrant":
		var g v1alpha1.ToolGrant
		err := into(&g)
		l.m.grants = append(l.m.grants, g)
		return err
	case "ConfigMap":
		var c corev1.ConfigMap
		err := into(&c)
		l.m.configMaps = append(l.m.configMaps, c)
		return err
	case "Namespace":
		l.m.namespaces[u.GetName()] = u.GetLabels()
		return nil
	}
	var s corev1.Secret
	if err := into(&s); err != nil {
		return errors.New("not a Secret") // what it says may be secret
	}
	entries := map[string][]byte{}
	maps.Copy(entries, s.Data)
	for k, v := range s.StringData {
		entries[k] = []byte(v)
	}
	l.m.secrets[s.Namespace+"/"+s.Name] = entries
	return nil
}

// settleNamespaces puts objects without a namespace into the run's, as kubectl
// would with its current one.
func (m *manifests) settleNamespaces() {
	if m.run.Namespace == "" {
		m.run.Namespace = metav1.NamespaceDefault
	}
	ns := m.run.Namespace
	put := func(o *metav1.ObjectMeta) {
		if o.Namespace == "" {
			o.Namespace = ns
		}
		o.Generation = 1
		if o.UID == "" {
			o.UID = newUID()
		}
	}
	put(&m.run.ObjectMeta)
	for i := range m.recipes {
		put(&m.recipes[i].ObjectMeta)
	}
	for i := range m.grants {
		put(&m.grants[i].ObjectMeta)
	}
	for i := range m.configMaps {
		put(&m.configMaps[i].ObjectMeta)
	}
}

// configMapsOf are the ConfigMaps of a namespace, by name.
func (m *manifests) configMapsOf(namespace string) map[string]*corev1.ConfigMap {
	out := map[string]*corev1.ConfigMap{}
	for i := range m.configMaps {
		if c := &m.configMaps[i]; c.Namespace == namespace {
			out[c.Name] = c
		}
	}
	return out
}
