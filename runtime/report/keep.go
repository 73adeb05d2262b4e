package report

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// configMap is an empty ConfigMap that belongs to the run and never changes.
func (c *Client) configMap(name string) *corev1.ConfigMap {
	yes := true
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.cfg.Run.Namespace, Name: name,
			Labels: map[string]string{
				contract.LabelRunUID: c.cfg.Run.UID, contract.LabelGeneration: fmt.Sprint(c.cfg.Run.Generation),
				"app.kubernetes.io/name": "codeact-runtime", "app.kubernetes.io/managed-by": "codeact-operator",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: contract.APIGroup + "/" + contract.APIVersion, Kind: contract.AgentRunKind,
				Name: c.cfg.Run.Name, UID: types.UID(c.cfg.Run.UID), Controller: &yes,
			}},
		},
		Immutable: &yes,
	}
}

// store creates the ConfigMap. It tries for as long as WriteThrough does.
//
// The pod cannot read ConfigMaps. When the name is taken after a try whose answer
// was lost, that try made it; when it is taken at once, it is somebody else's, and
// that is an error.
func (c *Client) store(ctx context.Context, cm *corev1.ConfigMap) error {
	body, err := json.Marshal(cm)
	if err != nil {
		return fmt.Errorf("ConfigMap %s cannot be written as JSON: %w", cm.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.WriteFor)
	defer cancel()
	b, lost := backoff{next: c.cfg.FirstWait}, false
	for {
		err := c.createConfigMap(ctx, body)
		switch {
		case err == nil, lost && apierrors.IsAlreadyExists(err):
			return nil
		case apierrors.IsAlreadyExists(err):
			return fmt.Errorf("a ConfigMap %s is there already, and is not this pod's", cm.Name)
		case hopeless(err), apierrors.IsForbidden(err):
			return fmt.Errorf("create ConfigMap %s: %w", cm.Name, err)
		}
		lost = true
		if !b.wait(ctx) {
			return fmt.Errorf("create ConfigMap %s: %w", cm.Name, err)
		}
	}
}

func (c *Client) createConfigMap(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Attempt)
	defer cancel()
	return c.core.Post().Namespace(c.cfg.Run.Namespace).Resource("configmaps").
		Param("fieldManager", contract.RuntimeFieldManager).
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
}
