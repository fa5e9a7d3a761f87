// Package iam checks requests to EC2 against IAM policies. It derives the rights that a request needs from the request
// itself and from the tags of its resources. It refuses a request without all of these rights, with EC2's error.
//
// It supports the elements of a volume driver's policies: statements that allow, wildcards, a few conditions. Any other
// element of a policy is an error, so that nothing is skipped silently.
//
// Sources: the IAM User Guide ("Policy evaluation logic", "IAM JSON policy elements: Condition operators", "Set
// operators"), the Service Authorization Reference for Amazon EC2 (which action asks for which resources and has which
// condition keys), and the EC2 User Guide ("Grant permission to tag Amazon EC2 resources during creation").
package iam
