package v1alpha1

// TextSource says where a text of a Recipe stands that is not in the Recipe itself.
type TextSource struct {
	// configMapKeyRef names the text by ConfigMap and key.
	// +required
	ConfigMapKeyRef ConfigMapKeyRef `json:"configMapKeyRef"`
}

// ConfigMapKeyRef names one text in a ConfigMap of the same namespace.
type ConfigMapKeyRef struct {
	// name is the ConfigMap's.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="name must be that of a ConfigMap: lower-case letters, digits, '-' and '.'"
	Name string `json:"name"`
	// key is the one of the ConfigMap's data that holds the text.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",message="key must be that of a ConfigMap: letters, digits, '-', '_' and '.', not '.' and not with '..' at its start"
	Key string `json:"key"`
}
