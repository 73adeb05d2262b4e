// Package v1alpha1 holds the kinds of the API group codeact.dev: Recipe (a
// reviewed program), ToolGrant (the authority to call one tool) and AgentRun
// (one run of a program). The pages <kind>.md beside the types are the user's
// reference.
//
// +kubebuilder:object:generate=true
// +groupName=codeact.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind here.
var GroupVersion = schema.GroupVersion{Group: "codeact.dev", Version: "v1alpha1"}

// AddToScheme registers the kinds with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Recipe{}, &RecipeList{}, &ToolGrant{}, &ToolGrantList{}, &AgentRun{}, &AgentRunList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
