// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package quorate;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Signature;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.ECGenParameterSpec;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.HexFormat;

/** A certificate that a key on P-256 signs for itself, for localhost, in DER: the library of Java makes none. */
final class Certificate {
  private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyyMMddHHmmss'Z'").withZone(ZoneOffset.UTC);

  private Certificate() { }

  static KeyPair key() throws GeneralSecurityException {
    KeyPairGenerator keys = KeyPairGenerator.getInstance("EC");
    keys.initialize(new ECGenParameterSpec("secp256r1"));
    return keys.generateKeyPair();
  }

  static X509Certificate of(KeyPair key) throws GeneralSecurityException {
    byte[] algorithm = der(0x30, hex("06082a8648ce3d040302")); // ECDSA with SHA-256
    byte[] name = der(0x30, der(0x31, der(0x30, hex("0603550403"), der(0x0c, text("localhost")))));
    byte[] validity = der(0x30, time(Instant.now().minusSeconds(60)), time(Instant.now().plus(Duration.ofDays(36_500))));
    byte[] alternative = der(0x30, hex("0603551d11"), der(0x04, der(0x30, der(0x82, text("localhost")))));
    byte[] usage = der(0x30, hex("0603551d25"), der(0x04, der(0x30, hex("06082b06010505070301")))); // of servers
    byte[] body = der(0x30, hex("a003020102"), der(0x02, BigInteger.ONE.toByteArray()), algorithm, name, validity, name,
        key.getPublic().getEncoded(), der(0xa3, der(0x30, alternative, usage)));
    Signature signature = Signature.getInstance("SHA256withECDSA");
    signature.initSign(key.getPrivate());
    signature.update(body);
    byte[] whole = der(0x30, body, algorithm, der(0x03, new byte[1], signature.sign()));
    return (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(whole));
  }

  /** Dates before 2050 have two digits for the year. */
  private static byte[] time(Instant at) {
    String digits = TIME.format(at);
    return digits.compareTo("2050") < 0 ? der(0x17, text(digits.substring(2))) : der(0x18, text(digits));
  }

  private static byte[] der(int tag, byte[]... parts) {
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    for (byte[] part : parts) content.writeBytes(part);
    int size = content.size();
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    all.write(tag);
    all.writeBytes(size < 128 ? new byte[] {(byte) size} : size < 256 ? new byte[] {(byte) 0x81, (byte) size}
        : new byte[] {(byte) 0x82, (byte) (size >> 8), (byte) size});
    all.writeBytes(content.toByteArray());
    return all.toByteArray();
  }

  private static byte[] hex(String digits) { return HexFormat.of().parseHex(digits); }

  private static byte[] text(String text) { return text.getBytes(StandardCharsets.US_ASCII); }
}
