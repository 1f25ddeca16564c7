// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package deploytest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	strict "sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// How manifests are read: kustomize builds a directory, and each object is decoded strictly: by the
// types of Kubernetes, or, of kinds that these do not know, by the types at the end, which have the
// fields that the manifests use. What the objects must say is in variants_test.go.

// manifests is the directory of the manifests.
const manifests = root + "/deploy/kubernetes"

// objects are the objects of a directory, by kind and name.
type objects map[string]any

// build builds a directory and decodes what comes of it.
func build(t *testing.T, dir string) objects {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(manifests, dir))
	require.NoError(t, err, dir)
	all := objects{}
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		require.NoError(t, err)
		object, err := decode(text)
		require.NoError(t, err, "%s: %s", dir, r.CurId())
		key := r.GetKind() + "/" + r.GetName()
		require.NotContains(t, all, key)
		all[key] = object
	}
	return all
}

// get returns the only object of a type whose key begins with a text.
func get[T any](t *testing.T, all objects, key string) T {
	t.Helper()
	var found []any
	for name, object := range all {
		if strings.HasPrefix(name, key) {
			found = append(found, object)
		}
	}
	require.Len(t, found, 1, key)
	object, ok := found[0].(T)
	require.True(t, ok, "%s is %T", key, found[0])
	return object
}

// scheme knows the kinds of Kubernetes that the manifests use.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apps.AddToScheme, core.AddToScheme, networking.AddToScheme, policy.AddToScheme, rbac.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// decode reads one object strictly: no unknown field, no field twice, no value of another type.
func decode(text []byte) (any, error) {
	var head meta.TypeMeta
	if err := yaml.Unmarshal(text, &head); err != nil {
		return nil, err
	}
	if own, known := extensions()[head.APIVersion+" "+head.Kind]; known {
		document, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return nil, err
		}
		faults, err := strict.UnmarshalStrict(document, own)
		return own, errors.Join(append(faults, err)...)
	}
	s := scheme()
	object, _, err := json.NewSerializerWithOptions(json.DefaultMetaFactory, s, s, json.SerializerOptions{Yaml: true, Strict: true}).Decode(text, nil, nil)
	return object, err
}

// directories are those that can be applied.
var directories = []string{"statefulset", "deployment", "statefulset-cert-manager", "deployment-cert-manager", "production"}

// Every file is decoded strictly as it stands, and is part of a directory that can be applied.
func TestEveryManifestIsDecodedStrictly(t *testing.T) {
	built := objects{}
	for _, dir := range directories {
		maps.Copy(built, build(t, dir))
	}
	seen, kinds := 0, map[string]bool{}
	require.NoError(t, filepath.WalkDir(manifests, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "kustomization.yaml" || entry.Name() == "cluster.yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			_, err := decode(document)
			require.NoError(t, err, path)
			var head meta.PartialObjectMetadata
			require.NoError(t, yaml.Unmarshal(document, &head))
			require.Contains(t, built, head.Kind+"/"+head.Name, "%s is in no directory that is applied", path)
			kinds[head.Kind] = true
			seen++
		}
		return nil
	}))
	require.Greater(t, seen, 12)
	for _, kind := range []string{"StatefulSet", "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "Role", "RoleBinding", "ServiceAccount", "Certificate", "Issuer", "ServiceMonitor", "PrometheusRule"} {
		require.True(t, kinds[kind], kind)
	}
}

// What is wrong with a manifest is found: each fault is planted in a file that is right otherwise.
func TestFaultsOfManifestsAreFound(t *testing.T) {
	for name, f := range map[string]struct{ file, was, is, want string }{
		"unknown field":         {"statefulset/statefulset.yaml", "podManagementPolicy", "podManagmentPolicy", `unknown field "spec.podManagmentPolicy"`},
		"deep unknown field":    {"deployment/deployment.yaml", "httpGet: {path: /health/live", "httpget: {path: /health/live", `unknown field "spec.template.spec.containers[0].livenessProbe.httpget"`},
		"field twice":           {"base/service-account.yaml", "automountServiceAccountToken: false", "automountServiceAccountToken: false\nautomountServiceAccountToken: true", "already set"},
		"number as text":        {"statefulset/statefulset.yaml", "replicas: 3", `replicas: "3"`, "string"},
		"no such kind":          {"base/disruption-budget.yaml", "policy/v1", "policy/v1beta1", "no kind"},
		"no field of a monitor": {"monitoring/service-monitor.yaml", "interval: 15s", "intervall: 15s", `unknown field "spec.endpoints[0].intervall"`},
		"no usage":              {"statefulset-cert-manager/certificates.yaml", "dnsNames", "dnsnames", `unknown field "spec.dnsnames"`},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(manifests, f.file))
			require.NoError(t, err)
			require.Contains(t, string(text), f.was)
			spoiled := strings.Replace(string(text), f.was, f.is, 1)
			faults := ""
			for document := range strings.SplitSeq(spoiled, "\n---\n") {
				if _, err := decode([]byte(document)); err != nil {
					faults += fmt.Sprintln(err)
				}
			}
			require.Contains(t, faults, f.want)
		})
	}
}

// extensions returns an empty object of each kind that Kubernetes itself does not know, by its version
// and kind. The types have the fields that the manifests use, by the names in the documents of
// cert-manager (v1) and of the Prometheus operator (v1): another field is refused here, and is to be
// added with its type.
func extensions() map[string]any {
	return map[string]any{
		"cert-manager.io/v1 Issuer":               new(issuer),
		"cert-manager.io/v1 Certificate":          new(certificate),
		"monitoring.coreos.com/v1 ServiceMonitor": new(serviceMonitor),
		"monitoring.coreos.com/v1 PrometheusRule": new(prometheusRule),
	}
}

type issuer struct {
	meta.TypeMeta `json:",inline"`

	Metadata meta.ObjectMeta `json:"metadata"`
	Spec     struct {
		SelfSigned *struct{} `json:"selfSigned"`
		CA         *struct {
			SecretName string `json:"secretName"`
		} `json:"ca"`
	} `json:"spec"`
}

type certificate struct {
	meta.TypeMeta `json:",inline"`

	Metadata meta.ObjectMeta `json:"metadata"`
	Spec     struct {
		IsCA        bool          `json:"isCA"`
		CommonName  string        `json:"commonName"`
		SecretName  string        `json:"secretName"`
		Duration    meta.Duration `json:"duration"`
		RenewBefore meta.Duration `json:"renewBefore"`
		Usages      []string      `json:"usages"`
		DNSNames    []string      `json:"dnsNames"`
		URIs        []string      `json:"uris"`
		PrivateKey  struct {
			Algorithm      string `json:"algorithm"`
			Size           int    `json:"size"`
			RotationPolicy string `json:"rotationPolicy"`
		} `json:"privateKey"`
		IssuerRef struct {
			Name  string `json:"name"`
			Kind  string `json:"kind"`
			Group string `json:"group"`
		} `json:"issuerRef"`
	} `json:"spec"`
}

type serviceMonitor struct {
	meta.TypeMeta `json:",inline"`

	Metadata meta.ObjectMeta `json:"metadata"`
	Spec     struct {
		Selector  meta.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port     string `json:"port"`
			Path     string `json:"path"`
			Interval string `json:"interval"`
		} `json:"endpoints"`
	} `json:"spec"`
}

type prometheusRule struct {
	meta.TypeMeta `json:",inline"`

	Metadata meta.ObjectMeta `json:"metadata"`
	Spec     struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

// Certificates of cert-manager are what nodes accept: both usages, the names of all pods, signed by the
// authority of the same directory, renewed before they end.
func TestCertificatesAreWhatNodesAccept(t *testing.T) {
	for dir, secret := range map[string]string{"statefulset-cert-manager": "visits-tls", "deployment-cert-manager": "visits-authority", "production": "visits-tls"} {
		all := build(t, dir)
		authority := get[*certificate](t, all, "Certificate/visits-authority")
		require.True(t, authority.Spec.IsCA)
		require.Equal(t, "Never", authority.Spec.PrivateKey.RotationPolicy, "a new key would be another authority")
		require.NotNil(t, get[*issuer](t, all, "Issuer/"+authority.Spec.IssuerRef.Name).Spec.SelfSigned)
		require.Equal(t, "visits-authority", authority.Spec.SecretName)
		issued := []*certificate{authority}
		if secret == "visits-tls" {
			nodes := all["Certificate/visits"].(*certificate)
			require.Equal(t, secret, nodes.Spec.SecretName)
			require.Subset(t, nodes.Spec.Usages, []string{"server auth", "client auth", "digital signature"})
			require.Equal(t, authority.Spec.SecretName, all["Issuer/"+nodes.Spec.IssuerRef.Name].(*issuer).Spec.CA.SecretName)
			set := get[*apps.StatefulSet](t, all, "StatefulSet/")
			for n := range *set.Spec.Replicas + 2 { // Some more, so that scaling out needs no new certificate.
				require.Contains(t, nodes.Spec.DNSNames, fmt.Sprintf("visits-%d.%s", n, set.Spec.ServiceName))
			}
			require.False(t, slices.ContainsFunc(nodes.Spec.DNSNames, func(n string) bool { return strings.Contains(n, "*") }))
			issued = append(issued, nodes)
		}
		for _, c := range issued {
			require.Less(t, c.Spec.RenewBefore.Duration, c.Spec.Duration.Duration)
			require.Positive(t, c.Spec.RenewBefore.Duration)
		}
	}
}
