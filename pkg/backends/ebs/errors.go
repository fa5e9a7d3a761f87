package ebs

import (
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// annotate adds the operation and its subject to an error; every method that is called from outside defers it.
func annotate(err *error, op, subject string) {
	if *err != nil {
		*err = failure.Of(failure.KindOf(*err), op, subject, *err)
	}
}

// ofEC2 gives the SDK's error a Kind. An error that is not EC2's answer says nothing about the request's effect.
func ofEC2(err error) error {
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*backends.Error](err); ok {
		return own // Nothing was sent.
	}
	api, ok := errors.AsType[smithy.APIError](err)
	switch {
	case outOfTime(err):
		return backends.Errorf(backends.Unavailable, "EC2 did not answer in time: %w", err)
	case !ok:
		return backends.Errorf(backends.Unavailable, "EC2 cannot be reached: %w", err)
	}
	return &backends.Error{Kind: kindOf(api), Err: &apiError{api, err}}
}

// apiError is EC2's own answer, without the SDK's additions.
type apiError struct {
	api   smithy.APIError
	whole error // the SDK's error, which also has the status of the answer
}

// Error renders it.
func (e *apiError) Error() string {
	return "EC2 says " + e.api.ErrorCode() + ": " + e.api.ErrorMessage()
}

// Unwrap returns the SDK's error.
func (e *apiError) Unwrap() error { return e.whole }

// codeOf returns EC2's error code; empty if the error is not EC2's answer.
func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

// kindOf maps the codes of the API reference ("Error codes for the Amazon EC2 API").
func kindOf(api smithy.APIError) backends.Kind {
	switch code := api.ErrorCode(); code {
	case "InvalidVolume.NotFound", "InvalidVolumeID.Malformed", "InvalidSnapshot.NotFound", "InvalidSnapshotID.Malformed",
		"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed", "InvalidAttachment.NotFound",
		"InvalidVolumeModification.NotFound", "InvalidID":
		return backends.NotFound
	case "VolumeInUse", "InvalidSnapshot.InUse", "VolumeModificationRateExceeded":
		return backends.InUse
	case "IncorrectState", "IncorrectInstanceState", "IncorrectModificationState", "ConcurrentTagAccess",
		"SnapshotCreationPerVolumeRateExceeded",
		"IdempotentParameterMismatch", "IdempotentInstanceTerminated":
		return backends.Busy
	case "VolumeLimitExceeded", "MaxIOPSLimitExceeded", "InsufficientVolumeCapacity", "AttachmentLimitExceeded",
		"SnapshotLimitExceeded",
		"ConcurrentSnapshotLimitExceeded", "VolumeModificationSizeLimitExceeded", "InvalidZone.NotFound":
		return backends.Exhausted
	case "UnauthorizedOperation", "AuthFailure", "Blocked", "InvalidClientTokenId", "OptInRequired", "PendingVerification",
		"SignatureDoesNotMatch", "UnrecognizedClientException":
		return backends.Denied
	case "InvalidParameter", "InvalidParameterValue", "InvalidParameterCombination", "InvalidParameterDependency",
		"MissingParameter", "UnknownParameter",
		"UnsupportedOperation", "UnknownVolumeType", "VolumeTypeNotAvailableInZone", "InvalidVolume.ZoneMismatch",
		"TagLimitExceeded", "TagPolicyViolation", "InvalidTagKey.Malformed":
		return backends.Invalid
	}
	// Throttling has several codes, and server faults have more. Only a known code is final.
	return backends.Unavailable
}

// mentions reports whether the message of EC2's answer contains the ID.
func mentions(err error, id string) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && strings.Contains(api.ErrorMessage(), id)
}

// throttled reports whether EC2 refused a request for its rate. Such a request had no effect.
func throttled(err error) bool {
	_, ok := retry.DefaultThrottleErrorCodes[codeOf(err)]
	return ok
}

// turnedAway reports whether EC2 refused a request, whatever the code. Such a request had no effect. A server fault may
// come after the effect. An error in which the SDK finds no code, and which it calls UnknownError, may not be from EC2.
func turnedAway(err error) bool {
	answer, ok := errors.AsType[*smithyhttp.ResponseError](err)
	code := codeOf(err)
	return ok && code != "" && code != "UnknownError" && answer.HTTPStatusCode()/100 == 4
}

// mayArrive reports whether a failed request may have had its effect, or may still have it.
func mayArrive(err error) bool {
	return backends.Is(err, backends.Unavailable) && !throttled(err) && !turnedAway(err)
}
