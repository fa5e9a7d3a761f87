// Package iam holds requests to EC2 against IAM policies: which rights a request takes is derived from the request
// itself and from the tags of what it is about, and who has not all of them is refused, as EC2 refuses.
//
// It knows what policies of a driver for volumes are made of: statements that allow, wildcards, a few conditions.
// Anything else in a policy is an error, so that nothing is taken to be checked that is not.
//
// Sources: the IAM User Guide ("Policy evaluation logic", "IAM JSON policy elements: Condition operators", "Set
// operators"), the Service Authorization Reference for Amazon EC2 (which action asks for which resources and has which
// condition keys), and the EC2 User Guide ("Grant permission to tag Amazon EC2 resources during creation").
package iam
