// What people would write: the official packages, one client for the life of the process.
import { SQSClient, SendMessageCommand } from "@aws-sdk/client-sqs";
import { InteractionResponseType, verifyKey } from "discord-interactions";

const WINDOW_S = 300;
const sqs = new SQSClient({});

export async function handler(event) {
  const signature = event.headers["x-signature-ed25519"];
  const timestamp = event.headers["x-signature-timestamp"];
  const isFresh = Math.abs(Number(timestamp) - Date.now() / 1000) <= WINDOW_S;
  if (!isFresh || !(await verifyKey(event.body, signature, timestamp, process.env.DISCORD_PUBLIC_KEY))) {
    return { statusCode: 401, body: "invalid request signature" };
  }
  const asked = JSON.parse(event.body);
  const task = {
    id: asked.id,
    guild: asked.guild_id,
    channel: asked.channel_id,
    token: asked.token,
    user: asked.member.user.id,
    name: asked.member.user.username,
    prompt: asked.data.options[0].value,
  };
  await sqs.send(
    new SendMessageCommand({
      QueueUrl: process.env.MESSAGES_QUEUE_URL,
      MessageBody: JSON.stringify(task),
      MessageGroupId: `open:${asked.id}`,
      MessageDeduplicationId: asked.id,
    }),
  );
  return {
    statusCode: 200,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ type: InteractionResponseType.DEFERRED_CHANNEL_MESSAGE_WITH_SOURCE }),
  };
}
