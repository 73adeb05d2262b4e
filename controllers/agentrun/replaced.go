package agentrun

import (
	"sync"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// replaced remembers, of each run, the version that the manager's last status
// write replaced. A pod's event often comes to the cache before that write does;
// a look at the replaced version would only cost a write that is refused. An
// entry lasts until a newer version is seen. The zero value is ready to use.
type replaced struct{ versions sync.Map }

// by says that a write replaced this version of the run.
func (r *replaced) by(run *v1alpha1.AgentRun) { r.versions.Store(run.UID, run.ResourceVersion) }

// old reports whether this version of the run is known to be replaced.
func (r *replaced) old(run *v1alpha1.AgentRun) bool {
	v, ok := r.versions.Load(run.UID)
	if ok && v != run.ResourceVersion {
		r.versions.Delete(run.UID)
		return false
	}
	return ok
}
