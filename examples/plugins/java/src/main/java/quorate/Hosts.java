// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package quorate;

import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.Locale;
import java.util.Set;
import quorate.plugin.v1.DiscoveryGrpc;
import quorate.plugin.v1.DiscoveryOuterClass.LookupRequest;
import quorate.plugin.v1.DiscoveryOuterClass.LookupResponse;
import quorate.plugin.v1.PluginOuterClass.Policy;

/**
 * The strategy: contact points are the lines of a file, which is read at each lookup. A line is "host", "host:port" or
 * "[address]:port"; what follows # is a comment. The file is for one service, so that the question does not matter.
 */
final class Hosts extends DiscoveryGrpc.DiscoveryImplBase implements Plugin.Strategy {
  private static final int TARGETS_MAX = 10_000;
  private Path file;

  @Override public String schema() {
    return """
        {"type": "object", "additionalProperties": false, "required": ["file"], "properties": {
          "file": {"type": "string", "pattern": "^/", "description": "The absolute path of the file with the contact points."}}}
        """;
  }

  @Override public void configure(Plugin.Settings settings) {
    String path = settings.text("file", "");
    if (!path.startsWith("/")) {
      settings.wrong("file", "\"" + path + "\" is not the absolute path of a file");
      return;
    }
    file = Path.of(path);
  }

  @Override public void lookup(LookupRequest request, StreamObserver<LookupResponse> observer) {
    Plugin.answer(observer, this::read);
  }

  private record Target(String host, int port) { }

  private LookupResponse read() {
    Set<Target> targets = new LinkedHashSet<>();
    try {
      int number = 0;
      for (String line : Files.readAllLines(file)) {
        number++;
        String text = line.replaceFirst("#.*", "").strip().toLowerCase(Locale.ROOT);
        if (!text.isEmpty()) targets.add(parse(text, number));
      }
    } catch (IOException err) {
      throw new Plugin.Undecided(file + " cannot be read: " + err);
    }
    if (targets.size() > TARGETS_MAX) throw new Plugin.Undecided(file + " has " + targets.size() + " lines, the limit is " + TARGETS_MAX);
    LookupResponse.Builder found = LookupResponse.newBuilder().setReason(Plugin.line("hosts: " + targets.size() + " lines of " + file));
    for (Target t : targets) {
      found.addHost(t.host).addPort(t.port).addIp(com.google.protobuf.ByteString.EMPTY);
    }
    return found.build();
  }

  private Target parse(String text, int number) {
    String host = text;
    String port = "0";
    int colon = text.lastIndexOf(':');
    if (text.startsWith("[") || colon >= 0 && text.indexOf(':') == colon) {
      if (colon > text.indexOf(']')) {
        port = text.substring(colon + 1);
        host = text.substring(0, colon);
      }
      host = host.replaceAll("^\\[|\\]$", "");
    }
    if (host.matches("[0-9a-z_.:-]{1,253}") && port.matches("[0-9]{1,5}") && Integer.parseInt(port) <= 65_535) {
      return new Target(host, Integer.parseInt(port));
    }
    throw new Plugin.Undecided(file + ":" + number + ": \"" + text + "\" is neither host nor host:port");
  }

  public static void main(String[] args) throws Exception {
    Plugin.serve("hosts", "1.0.0", Policy.POLICY_DISCOVERY, new Hosts()); // The file may change: nothing is promised.
  }
}
