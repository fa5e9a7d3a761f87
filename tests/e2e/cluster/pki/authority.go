package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is the lifetime of certificates.
const validity = 365 * 24 * time.Hour

// authority signs certificates.
type authority struct {
	dir         string
	certificate *x509.Certificate
	key         crypto.Signer
}

// request describes the subject of a certificate.
type request struct {
	file      string // .crt and .key
	name      string // the user, or the server's name
	groups    []string
	hosts     []string // additional names of a server
	addresses []string
}

// newAuthority creates an authority whose certificate is dir/file.crt.
func newAuthority(dir, file, name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := template(name)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{dir: dir, certificate: certificate, key: key}, writePair(dir, file, der, key)
}

func template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(validity),
	}
}

// issue writes a certificate for a client or a server, and its key.
func (a *authority) issue(r request) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := template(r.name)
	template.Subject.Organization = r.groups
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	template.DNSNames = r.hosts
	for _, address := range r.addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return err
	}
	return writePair(a.dir, r.file, der, key)
}

func writePair(dir, file string, certificate []byte, key *ecdsa.PrivateKey) error {
	if err := writePEM(filepath.Join(dir, file+".crt"), "CERTIFICATE", certificate); err != nil {
		return err
	}
	return writeKey(dir, file, key)
}

func writeKey(dir, file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, file+".key"), "PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
