// Command refusals prints what a cluster with JobSet would refuse in JobSet manifests.
//
// It runs each manifest through the code that an API server and the Job controller run: the strict decoder of
// Kubernetes into JobSet's own types, the validation of metadata and of JobSet's own CustomResourceDefinition, and
// Kubernetes' validation of every job. Not run are the CRD's CEL rules and the webhook of JobSet's controller (it checks the
// length of names), which needs a client library as large as all the rest.
//
// A manifest may have several objects, as YAML documents or as the items of a List, split by the code of kubectl. Beside
// one JobSet it may have SecretProviderClasses, decoded into the driver's own type, and SecretSyncs, whose type GKE does
// not publish: of those only the metadata is validated.
//
// It is a part of this module, whose other programs need most of its packages too; tests/official/oldest.mod builds it
// with the oldest release of JobSet that this project writes for.
//
// Usage: refusals CRD < manifests > refusals. Stdin holds one JSON string per line, a manifest; stdout gets one JSON
// array per line, the refusals of that manifest.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/capabilities"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	secretsstore "sigs.k8s.io/secrets-store-csi-driver/apis/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: refusals CRD < manifests")
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
	if err := secretsstore.AddToScheme(scheme); err != nil {
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
	objects, err := split(manifest)
	if err != nil {
		return []string{err.Error()}
	}
	texts, sets := []string{}, 0
	for _, object := range objects {
		refused, isSet := s.objectRefusals(object)
		texts = append(texts, refused...)
		if isSet {
			sets++
		}
	}
	if len(texts) == 0 && sets != 1 {
		return []string{"not one JobSet"}
	}
	return texts
}

// split returns the objects of a manifest, each as YAML or JSON.
func split(manifest []byte) ([][]byte, error) {
	var objects [][]byte
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		var list struct {
			Kind  string            `json:"kind"`
			Items []json.RawMessage `json:"items"`
		}
		if err := yaml.Unmarshal(document, &list); err == nil && list.Kind == "List" {
			for _, item := range list.Items {
				objects = append(objects, item)
			}
		} else {
			objects = append(objects, document)
		}
	}
}

// objectRefusals returns the refusals of one object, and true for a JobSet.
func (s *server) objectRefusals(manifest []byte) ([]string, bool) {
	var sync unstructured.Unstructured
	if err := yaml.Unmarshal(manifest, &sync.Object); err == nil && sync.GetAPIVersion() == "secret-sync.gke.io/v1" {
		return texts(metadataErrors(&sync)), false
	}
	object, _, err := s.decoder.Decode(manifest, nil, nil)
	if err != nil {
		return []string{err.Error()}, false
	}
	switch object := object.(type) {
	case *secretsstore.SecretProviderClass:
		return texts(metadataErrors(object)), false
	case *jobset.JobSet:
		return texts(s.setErrors(object, manifest)), true
	}
	return []string{"neither a JobSet nor an object that provides secrets"}, false
}

func texts(refused field.ErrorList) []string {
	messages := make([]string, len(refused))
	for i, refusal := range refused {
		messages[i] = refusal.Error()
	}
	return messages
}

func (s *server) setErrors(set *jobset.JobSet, manifest []byte) field.ErrorList {
	refused := append(metadataErrors(set), s.schemaErrors(manifest)...)
	for i := range set.Spec.ReplicatedJobs {
		place := field.NewPath("spec", "replicatedJobs").Index(i).Child("template")
		addClaims(&set.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec, manifest)
		refused = append(refused, jobErrors(&set.Spec.ReplicatedJobs[i].Template, place)...)
	}
	return refused
}

// addClaims adds the volumes of the set's claims to a pod, as JobSet's controller does. The claims are read from the
// manifest, because the type of the oldest release does not have them.
func addClaims(pod *corev1.PodSpec, manifest []byte) {
	var set struct {
		Spec struct {
			VolumeClaimPolicies []struct {
				Templates []corev1.PersistentVolumeClaim `json:"templates"`
			} `json:"volumeClaimPolicies"`
		} `json:"spec"`
	}
	_ = yaml.Unmarshal(manifest, &set)
	for _, policy := range set.Spec.VolumeClaimPolicies {
		for _, claim := range policy.Templates {
			source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}
			volume := corev1.VolumeSource{PersistentVolumeClaim: source}
			pod.Volumes = append(pod.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: volume})
		}
	}
}

func metadataErrors(object metav1.Object) field.ErrorList {
	if object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault) // as kubectl does
	}
	return apivalidation.ValidateObjectMetaAccessor(object, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

func (s *server) schemaErrors(manifest []byte) field.ErrorList {
	var raw map[string]any
	if err := yaml.Unmarshal(manifest, &raw); err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	nameRules(raw)
	defaulting.Default(raw, s.schema)
	return crdvalidation.ValidateCustomResource(nil, raw, s.validator)
}

// nameRules names the rules of a failure policy that have no name, as JobSet's webhook does before the validation:
// https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/webhooks/jobset_webhook.go
func nameRules(raw map[string]any) {
	rules, _, _ := unstructured.NestedSlice(raw, "spec", "failurePolicy", "rules")
	for i, rule := range rules {
		if rule, ok := rule.(map[string]any); ok && rule["name"] == nil {
			rule["name"] = fmt.Sprintf("failurePolicyRule%v", i)
		}
	}
	if len(rules) > 0 {
		_ = unstructured.SetNestedSlice(raw, rules, "spec", "failurePolicy", "rules")
	}
}

// jobErrors validates a job as the API server will when the controller creates it.
func jobErrors(template *batchv1.JobTemplateSpec, place *field.Path) field.ErrorList {
	job := &batchv1.Job{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	// JobSet's webhook sets this one where it is missing, and it differs from Kubernetes' own default:
	// https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/webhooks/jobset_webhook.go
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
