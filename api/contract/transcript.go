package contract

// TranscriptRef says where the transcript of an execution is.
// +kubebuilder:object:generate=true
type TranscriptRef struct {
	// configMap holds it; absent when it could not be stored.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap,omitempty"`
	// lastHash is the hash of its last record, which hangs on all before it.
	// +required
	// +kubebuilder:validation:MaxLength=71
	LastHash string `json:"lastHash"`
	// records counts its records.
	// +required
	Records int64 `json:"records"`
	// truncated says that it was too large and says so itself where something is left
	// out.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
}
