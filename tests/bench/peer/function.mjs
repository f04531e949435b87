// The loop of Lambda's Node runtime, no more than it needs: ask for work, hand it on, answer. One kept connection.
import http from "node:http";
import { handler } from "./handler.mjs";

const [hostname, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(":");
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

function exchange(method, path, body) {
  return new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const request = http.request({ hostname, port, agent, method, path: `/2018-06-01/runtime/invocation/${path}`, headers }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("end", () => resolve({ headers: response.headers, body: Buffer.concat(parts).toString() }));
      response.on("error", reject);
    });
    request.on("error", reject);
    request.end(body);
  });
}

async function run() {
  for (;;) {
    const next = await exchange("GET", "next");
    const answer = await handler(JSON.parse(next.body));
    await exchange("POST", `${next.headers["lambda-runtime-aws-request-id"]}/response`, JSON.stringify(answer));
  }
}

run();
