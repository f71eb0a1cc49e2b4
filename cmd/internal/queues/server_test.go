// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// serve runs a NATS server with a configuration file of these lines, and returns its
// host:port. JetStream keeps its files in a directory of the test.
func serve(t *testing.T, lines ...string) (address string) {
	t.Helper()
	dir := t.TempDir()
	text := "listen: \"127.0.0.1:-1\"\n"
	for _, l := range lines {
		text += l + "\n"
	}
	file := filepath.Join(dir, "nats.conf")
	write(t, file, text)
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	opts.NoSigs, opts.NoLog = true, true
	if opts.JetStream {
		opts.StoreDir = dir
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	go srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	if !srv.ReadyForConnections(30 * time.Second) {
		t.Fatal("the server is not up after 30 s")
	}
	return srv.Addr().String()
}

const jetStream = "jetstream: {}"

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// authority signs certificates.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.file, _ = a.issue(t, "authority", func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	})
	return a
}

// issue writes a certificate and its key as PEM files.
func (a *authority) issue(t *testing.T, name string, change func(*x509.Certificate)) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	change(c)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert == nil {
		a.key = key
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile = write(t, filepath.Join(a.dir, name+".crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	keyFile = write(t, filepath.Join(a.dir, name+".key"), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})))
	return certFile, keyFile
}

// operator returns the configuration of a server whose users have JWTs, and the
// credentials file of one.
func operator(t *testing.T) (config, credsFile string) {
	t.Helper()
	pair := func(make func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		kp, err := make()
		if err != nil {
			t.Fatal(err)
		}
		public, err := kp.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return kp, public
	}
	sign := func(c jwt.Claims, by nkeys.KeyPair) string {
		text, err := c.Encode(by)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	op, opID := pair(nkeys.CreateOperator)
	account, accountID := pair(nkeys.CreateAccount)
	_, systemID := pair(nkeys.CreateAccount)
	user, userID := pair(nkeys.CreateUser)
	opClaims := jwt.NewOperatorClaims(opID)
	opClaims.SystemAccount = systemID
	accountClaims := jwt.NewAccountClaims(accountID)
	accountClaims.Limits.JetStreamLimits.DiskStorage = jwt.NoLimit
	accountClaims.Limits.JetStreamLimits.MemoryStorage = jwt.NoLimit
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	creds, err := jwt.FormatUserConfig(sign(jwt.NewUserClaims(userID), account), seed)
	if err != nil {
		t.Fatal(err)
	}
	config = fmt.Sprintf("operator: %q\nsystem_account: %q\nresolver: MEMORY\nresolver_preload: {\n%s: %q\n%s: %q\n}", sign(opClaims, op), systemID,
		accountID, sign(accountClaims, op), systemID, sign(jwt.NewAccountClaims(systemID), op))
	return config, write(t, filepath.Join(t.TempDir(), "user.creds"), string(creds))
}

// nkey returns the file of a seed, and its public key.
func nkey(t *testing.T) (file, public string) {
	t.Helper()
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = user.PublicKey(); err != nil {
		t.Fatal(err)
	}
	return write(t, filepath.Join(t.TempDir(), "user.nk"), string(seed)), public
}
