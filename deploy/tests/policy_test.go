package tests

import (
	"context"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

// change is a request to the API server.
type change struct {
	user, resource, sub string
	before, after       map[string]any // nil if the object does not exist; of version v1 unless they say otherwise
}

// refusal returns the policy's refusal of a change, by the API server's own evaluation, or an empty string if the
// change is allowed.
func refusal(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy, c change) string {
	t.Helper()
	return refused(t, validator(t, policy), c)
}

// refused is like refusal for a compiled policy.
func refused(t *testing.T, v validating.Validator, c change) string {
	t.Helper()
	return refusedWith(t, v, c, nil)
}

// refusedWith is like refused for a policy with the given parameter object.
func refusedWith(t *testing.T, v validating.Validator, c change, params map[string]any) string {
	t.Helper()
	for _, result := range v.Validate(context.Background(), c.gvr(), c.attributes(), content(params), nil,
		celconfig.RuntimeCELCostBudget, nil).Decisions {
		if result.Evaluation == validating.EvalError {
			t.Fatalf("%v: %s", c, result.Message)
		}
		if result.Action == validating.ActionDeny {
			return result.Message
		}
	}
	return ""
}

// validator compiles a policy as the oldest supported Kubernetes does.
func validator(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy) validating.Validator {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, 30)))
	if err != nil {
		t.Fatal(err)
	}
	var variables []cel.NamedExpressionAccessor
	for _, v := range policy.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	var matches, validations, messages []cel.ExpressionAccessor
	for i := range policy.Spec.MatchConditions {
		matches = append(matches, (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]))
	}
	for _, v := range policy.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message})
		if messages = append(messages, nil); v.MessageExpression != "" {
			messages[len(messages)-1] = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
	}
	options := cel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil}
	compiler.CompileAndStoreVariables(variables, options, environment.NewExpressions)
	condition := func(list []cel.ExpressionAccessor) cel.ConditionEvaluator {
		evaluator := compiler.CompileCondition(list, options, environment.NewExpressions)
		for _, err := range evaluator.CompilationErrors() {
			t.Fatalf("%s: %v", policy.Name, err)
		}
		return evaluator
	}
	matcher := matchconditions.NewMatcher(condition(matches), policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	return validating.NewValidator(condition(validations), matcher, condition(nil), condition(messages),
		policy.Spec.FailurePolicy, nil)
}

// path returns the resource with its subresource, as policies name it.
func (c change) path() string { return strings.TrimSuffix(c.resource+"/"+c.sub, "/") }

func (c change) operation() admission.Operation {
	switch {
	case c.before == nil:
		return admission.Create
	case c.after == nil:
		return admission.Delete
	}
	return admission.Update
}

func (c change) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: c.version(), Resource: c.resource}
}

func (c change) version() string {
	if of, is := c.after["apiVersion"].(string); is {
		return of[strings.LastIndex(of, "/")+1:]
	}
	return "v1"
}

func (c change) attributes() *admission.VersionedAttributes {
	kind := schema.GroupVersionKind{Version: c.version(), Kind: map[string]string{
		"persistentvolumes": "PersistentVolume", "persistentvolumeclaims": "PersistentVolumeClaim", "nodes": "Node",
		"pods": "Pod", "volumeattachments": "VolumeAttachment", "storageclasses": "StorageClass",
		"volumesnapshots": "VolumeSnapshot", "volumesnapshotclasses": "VolumeSnapshotClass",
		"volumegroupsnapshotclasses": "VolumeGroupSnapshotClass", "configmaps": "ConfigMap",
		"volumesnapshotcontents": "VolumeSnapshotContent", "volumegroupsnapshotcontents": "VolumeGroupSnapshotContent",
	}[c.resource]}
	before, after := content(c.before), content(c.after)
	who := &user.DefaultInfo{Name: c.user}
	attributes := admission.NewAttributesRecord(after, before, kind, "default", "x", c.gvr(), c.sub, c.operation(), nil,
		false, who)
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind}
	versioned.VersionedObject.Set(after)
	versioned.VersionedOldObject.Set(before)
	return versioned
}

func content(fields map[string]any) runtime.Object {
	if fields == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: fields}
}
