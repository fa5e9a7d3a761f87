package driver

import (
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// finding is a status and reason, which CSI allows once in an answer about health, with all messages for it. Backends
// report one message for each pool, share or instance.
type finding[S comparable] struct {
	status   S
	reason   string
	messages []string
}

// message joins all messages in their order, as far as they fit.
func (f *finding[S]) message() string { return readable(strings.Join(f.messages, "; ")) }

// findings are in the order of their first messages.
type findings[S comparable] []*finding[S]

func (f *findings[S]) add(status S, reason, message string) {
	i := slices.IndexFunc(*f, func(of *finding[S]) bool { return of.status == status && of.reason == reason })
	if i < 0 {
		*f = append(*f, &finding[S]{status, reason, []string{message}})
		return
	}
	if of := (*f)[i]; !slices.Contains(of.messages, message) {
		of.messages = append(of.messages, message)
	}
}

// encodeHealth translates the issues of a volume; statuses have the same names on both sides.
func encodeHealth(handle string, issues []backends.HealthIssue) *csi.VolumeHealth {
	var found findings[csi.VolumeHealthErrorType]
	for _, issue := range issues {
		status := csi.VolumeHealthErrorType(csi.VolumeHealthErrorType_value[string(issue.Status)])
		found.add(status, issue.Reason, issue.Message)
	}
	health := &csi.VolumeHealth{VolumeId: handle}
	for _, f := range found {
		health.HealthStatuses = append(health.HealthStatuses,
			&csi.VolumeHealth_VolumeHealthEntry{Status: f.status, Reason: f.reason, Message: f.message()})
	}
	return health
}

// encodeStorageHealth translates the issues of the storage.
func encodeStorageHealth(issues []backends.StorageIssue) *csi.NodeGetStorageHealthResponse {
	var found findings[csi.StorageHealthErrorType]
	for _, issue := range issues {
		status := csi.StorageHealthErrorType_STORAGE_DEGRADED
		if issue.Unreachable {
			status = csi.StorageHealthErrorType_STORAGE_UNREACHABLE
		}
		found.add(status, issue.Reason, issue.Message)
	}
	response := &csi.NodeGetStorageHealthResponse{}
	for _, f := range found {
		response.BackendHealth = append(response.BackendHealth, &csi.NodeGetStorageHealthResponse_StorageBackendHealth{
			Status: f.status, Reason: f.reason, Message: f.message(),
		})
	}
	return response
}
