package runtimepod

import "testing"

func TestQuota(t *testing.T) {
	for msg, want := range map[string]bool{
		`pods "r" is forbidden: exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5`:               true,
		`pods "r" is forbidden: failed quota: q: must specify limits.cpu for: runtime`:                             true,
		`pods "r" is forbidden: status unknown for quota: q, resources: pods`:                                      true,
		`pods "r" is forbidden: maximum memory usage per Container is 16Mi, but limit is 97Mi`:                     true,
		`pods "r" is forbidden: cpu max limit to request ratio per Container is 1, but provided ratio is 2.000000`: true,
		`pods "r" is forbidden: violates PodSecurity "restricted:latest"`:                                          false,
		`pods "r" is forbidden: no PriorityClass with name none-such was found`:                                    false,
	} {
		if got := quota(msg); got != want {
			t.Errorf("%s: %v", msg, got)
		}
	}
}
