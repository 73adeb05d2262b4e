package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// RecipeTests is what came of the tests of one manifest. It is the record that
// they have run: for this digest they never run again.
type RecipeTests struct {
	// manifestDigest is the digest of the manifest whose tests these are.
	// +required
	// +kubebuilder:validation:MaxLength=71
	ManifestDigest string `json:"manifestDigest"`
	// attempts counts the check pods that were created for this digest.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Attempts int64 `json:"attempts,omitempty"`
	// lastAttemptTime is when the last of them was created.
	// +optional
	LastAttemptTime *metav1.Time `json:"lastAttemptTime,omitempty"`
	// lost says why the last of them left no result.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Lost string `json:"lost,omitempty"`
	// passed and failed count the tests; both are 0 until there is a result.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Passed int64 `json:"passed,omitempty"`
	// failed counts the tests that did not pass.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Failed int64 `json:"failed,omitempty"`
	// results are those of each test, in the order of spec.tests.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Results []RecipeTestResult `json:"results,omitempty"`
}

// RecipeTestResult is what came of one test.
type RecipeTestResult struct {
	// name is the test's.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// passed is true when everything was as the test expects.
	// +required
	Passed bool `json:"passed"`
	// reason is why the run of the test failed, where it did and should not have.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// message says what was not as the test expects; what is long is cut.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// Finished reports whether there is a result.
func (t *RecipeTests) Finished() bool { return t != nil && t.Passed+t.Failed > 0 }

// Take records what came of the tests, which are those that the report is of.
func (t *RecipeTests) Take(tests []contract.Fixture, report contract.CheckReport) {
	t.Passed, t.Failed = int64(report.Passed), int64(len(report.Failed))
	t.Results = make([]RecipeTestResult, 0, len(tests))
	for _, f := range tests {
		t.Results = append(t.Results, RecipeTestResult{Name: f.Name, Passed: true})
	}
	for _, f := range report.Failed {
		x := &t.Results[f.Index]
		x.Passed, x.Reason, x.Message = false, string(f.Reason), f.Message
	}
}
