package toolgrant

import "github.com/codeact-dev/codeact-operator/api/contract"

// checkBackend holds the backend to the declaration: its URL template is
// well-formed and names every argument that has no other way to the tool.
func checkBackend(s Snapshot) *contract.Fault {
	err := contract.CheckBackend(s.Grant.Declaration(), s.Grant.Contract().Backend)
	if err == nil {
		return nil
	}
	f, ok := contract.AsFault(err)
	if !ok {
		return contract.Faultf(contract.ReasonBackendInvalid, "%v", err)
	}
	return f
}
