// Command jobset says what a cluster with JobSet would refuse in JobSet manifests.
//
// It runs each manifest through the code that an API server and the Job controller run: the strict decoder of
// Kubernetes into JobSet's own types, the validation of metadata and of JobSet's own CustomResourceDefinition, and
// Kubernetes' validation of every job. Not run are the CRD's CEL rules and the webhook of JobSet's controller (it checks the
// length of names), which needs a client library as large as all the rest.
//
// Usage: jobset CRD < manifests > refusals. Stdin holds one JSON string per line, a manifest; stdout gets one JSON
// array per line, the refusals of that manifest.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/capabilities"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: jobset CRD < manifests")
	}
	capabilities.Setup(true, 0) // GKE's API server runs with --allow-privileged
	server, err := newServer(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if err := serve(server, os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func serve(s *server, in io.Reader, out io.Writer) error {
	answers := bufio.NewWriter(out)
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(answers)
	for {
		var manifest string
		if err := decoder.Decode(&manifest); errors.Is(err, io.EOF) {
			return answers.Flush()
		} else if err != nil {
			return err
		}
		if err := encoder.Encode(s.refusals([]byte(manifest))); err != nil {
			return err
		}
	}
}

// server is what an API server knows of JobSet.
type server struct {
	decoder   runtime.Decoder
	schema    *structural.Structural
	validator crdvalidation.SchemaValidator
}

func newServer(crdPath string) (*server, error) {
	props, err := crdSchema(crdPath)
	if err != nil {
		return nil, err
	}
	schema, err := structural.NewStructural(props)
	if err != nil {
		return nil, err
	}
	validator, _, err := crdvalidation.NewSchemaValidator(props)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := jobset.AddToScheme(scheme); err != nil {
		return nil, err
	}
	strict := serializer.SerializerOptions{Yaml: true, Strict: true}
	decoder := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme, strict)
	return &server{decoder: decoder, schema: schema, validator: validator}, nil
}

func crdSchema(path string) (*apiextensions.JSONSchemaProps, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return nil, err
	}
	props := &apiextensions.JSONSchemaProps{}
	published := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	return props, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(published, props, nil)
}

func (s *server) refusals(manifest []byte) []string {
	object, _, err := s.decoder.Decode(manifest, nil, nil)
	if err != nil {
		return []string{err.Error()}
	}
	set, ok := object.(*jobset.JobSet)
	if !ok {
		return []string{"not a JobSet"}
	}
	found := append(metadataErrors(set), s.schemaErrors(manifest)...)
	for i := range set.Spec.ReplicatedJobs {
		place := field.NewPath("spec", "replicatedJobs").Index(i).Child("template")
		found = append(found, jobErrors(&set.Spec.ReplicatedJobs[i].Template, place)...)
	}
	texts := make([]string, len(found))
	for i, refusal := range found {
		texts[i] = refusal.Error()
	}
	return texts
}

func metadataErrors(set *jobset.JobSet) field.ErrorList {
	if set.Namespace == "" {
		set.Namespace = metav1.NamespaceDefault // as kubectl does
	}
	return apivalidation.ValidateObjectMeta(&set.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

func (s *server) schemaErrors(manifest []byte) field.ErrorList {
	var raw map[string]any
	if err := yaml.Unmarshal(manifest, &raw); err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	defaulting.Default(raw, s.schema)
	return crdvalidation.ValidateCustomResource(nil, raw, s.validator)
}

// jobErrors validates a job as the API server will when the controller creates it.
func jobErrors(template *batchv1.JobTemplateSpec, place *field.Path) field.ErrorList {
	job := &batchv1.Job{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	// JobSet's webhook sets this one where it is missing, and it differs from Kubernetes' own default:
	// https://github.com/kubernetes-sigs/jobset/blob/v0.10.1/pkg/webhooks/jobset_webhook.go
	if job.Spec.Template.Spec.RestartPolicy == "" {
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
	legacyscheme.Scheme.Default(job)
	internal := &batch.Job{}
	if err := legacyscheme.Scheme.Convert(job, internal, nil); err != nil {
		return field.ErrorList{field.InternalError(place, err)}
	}
	checked := &batch.JobTemplateSpec{ObjectMeta: internal.ObjectMeta, Spec: internal.Spec}
	options := pod.GetValidationOptionsFromPodTemplate(&checked.Spec.Template, nil)
	return batchvalidation.ValidateJobTemplateSpec(checked, place, options)
}
