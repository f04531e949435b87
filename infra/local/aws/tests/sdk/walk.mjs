// Walks what Bobbin uses of AWS with AWS's JavaScript SDK, and records what is on the wire beneath it. Reads what to talk to
// from standard input; prints what it walked and every fault.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const given = JSON.parse(readFileSync(0, 'utf8'))
// The packages lie in the tests' cache, not beside this file.
const load = createRequire(`${given.packages}/package.json`)
const [sqs, dynamo, scheduler, secrets, lambda, formation] = [
  'sqs', 'dynamodb', 'scheduler', 'secrets-manager', 'lambda', 'cloudformation',
].map((name) => load(`@aws-sdk/client-${name}`))

const walked = []
const empty = new Set()
const faults = []
const holds = (what, condition) => condition || faults.push(`${what} does not hold`)

const settings = {
  endpoint: given.endpoint,
  region: 'us-east-1',
  maxAttempts: 1,
  credentials: { accessKeyId: given.access_key_id, secretAccessKey: given.secret_access_key },
}

// Between the SDK's parser and the wire: the raw answer, before anything of it is read.
const watched = (client) => {
  client.middlewareStack.add(
    (next, context) => async (request) => {
      const answered = await next(request)
      const { response } = answered
      const name = `${context.clientName} ${context.commandName} ${response.statusCode}`
      walked.push(name)
      holds(`${name} has a request id`, response.headers['x-amzn-requestid'])
      if (response.headers['content-length'] === '0') empty.add(context.commandName.replace('Command', ''))
      return answered
    },
    { step: 'deserialize', priority: 'low', name: 'watch' },
  )
  return client
}

// Refused, and the SDK makes its own class of error of it.
const refused = async (kind, promise, inspect = () => true) => {
  const error = await promise.then(() => undefined, (error) => error)
  if (!error) return faults.push(`${kind.name} was expected`)
  holds(`${error.name}: ${error.message} is ${kind.name}`, error instanceof kind)
  holds(`${kind.name} has a request id`, error.$metadata?.requestId)
  holds(`${kind.name} tells what it has to`, inspect(error))
}

const queues = async () => {
  const client = watched(new sqs.SQSClient(settings))
  const call = (name, input) => client.send(new sqs[`${name}Command`](input))
  const { QueueUrl } = await call('CreateQueue', {
    QueueName: 'js.fifo',
    Attributes: { FifoQueue: 'true', ContentBasedDeduplication: 'true' },
  })
  // The SDK itself compares the sums of what it sent and what it receives.
  const sent = await call('SendMessage', {
    QueueUrl, MessageBody: 'hello', MessageGroupId: 'g',
    MessageAttributes: { kind: { DataType: 'Binary', BinaryValue: Uint8Array.of(0, 255) } },
  })
  const { Messages: [message] } = await call('ReceiveMessage', {
    QueueUrl, MessageSystemAttributeNames: ['All'], MessageAttributeNames: ['All'],
  })
  holds('the message comes', message.MessageId === sent.MessageId)
  holds('bytes come as bytes', message.MessageAttributes.kind.BinaryValue[1] === 255)
  const held = { QueueUrl, ReceiptHandle: message.ReceiptHandle }
  await call('ChangeMessageVisibility', { ...held, VisibilityTimeout: 20 })
  holds('its group is locked', (await call('ReceiveMessage', { QueueUrl })).Messages === undefined)
  await call('DeleteMessage', held)
  await refused(sqs.ReceiptHandleIsInvalid, call('DeleteMessage', { QueueUrl, ReceiptHandle: 'none' }))
  await refused(sqs.QueueDoesNotExist, call('GetQueueUrl', { QueueName: 'nobody' }))
  await refused(sqs.EmptyBatchRequest, call('SendMessageBatch', { QueueUrl, Entries: [] }))
  const entry = (Id, MessageBody) => ({ Id, MessageBody, MessageGroupId: 'g' })
  const batch = await call('SendMessageBatch', { QueueUrl, Entries: [entry('a', 'a'), entry('b', '\u0001')] })
  holds('a batch tells what failed', batch.Failed[0].Id === 'b' && batch.Failed[0].SenderFault === true)
  await call('TagQueue', { QueueUrl, Tags: { a: '1' } })
  await call('UntagQueue', { QueueUrl, TagKeys: ['a'] })
  await call('SetQueueAttributes', { QueueUrl, Attributes: { VisibilityTimeout: '40' } })
  const told = await call('GetQueueAttributes', { QueueUrl, AttributeNames: ['VisibilityTimeout'] })
  holds('an attribute is set', told.Attributes.VisibilityTimeout === '40')
  await call('PurgeQueue', { QueueUrl })
  await refused(sqs.PurgeQueueInProgress, call('PurgeQueue', { QueueUrl }))
  await call('DeleteQueue', { QueueUrl })
  await refused(sqs.QueueDeletedRecently, call('CreateQueue', { QueueName: 'js.fifo', Attributes: { FifoQueue: 'true' } }))
}

const tables = async () => {
  const client = watched(new dynamo.DynamoDBClient(settings))
  const call = (name, input) => client.send(new dynamo[`${name}Command`](input))
  const TableName = 'js-table'
  const Key = { thread: { S: 't' } }
  await call('CreateTable', {
    TableName, BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [{ AttributeName: 'thread', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'thread', KeyType: 'HASH' }],
  })
  const put = {
    TableName, Item: { ...Key, version: { N: '1' }, raw: { B: Uint8Array.of(1, 2) } },
    ConditionExpression: 'attribute_not_exists(thread)', ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  }
  await call('PutItem', put)
  const lost = dynamo.ConditionalCheckFailedException
  await refused(lost, call('PutItem', put), (error) => error.Item.version.N === '1')
  const got = await call('GetItem', { TableName, Key, ConsistentRead: true })
  holds('bytes come back', got.Item.raw.B[1] === 2)
  const updated = await call('UpdateItem', {
    TableName, Key, UpdateExpression: 'ADD version :one', ExpressionAttributeValues: { ':one': { N: '1' } },
    ReturnValues: 'UPDATED_NEW',
  })
  holds('an update tells the new value', updated.Attributes.version.N === '2')
  const found = await call('Query', {
    TableName, KeyConditionExpression: 'thread = :t', ExpressionAttributeValues: { ':t': { S: 't' } },
  })
  holds('a query finds', found.Count === 1)
  const batch = await call('BatchGetItem', { RequestItems: { [TableName]: { Keys: [Key] } } })
  holds('a batch gets', batch.Responses[TableName].length === 1)
  const write = (expected) => call('TransactWriteItems', {
    TransactItems: [
      { Put: { TableName, Item: { thread: { S: 'other' } } } },
      { ConditionCheck: { TableName, Key, ConditionExpression: 'version = :v', ExpressionAttributeValues: { ':v': { N: expected } } } },
    ],
  })
  await write('2')
  const codes = (error) => error.CancellationReasons.map((reason) => reason.Code).join()
  await refused(dynamo.TransactionCanceledException, write('9'), (error) => codes(error) === 'None,ConditionalCheckFailed')
  await call('DeleteItem', { TableName, Key })
  await refused(dynamo.ResourceNotFoundException, call('GetItem', { TableName: 'nobody', Key }))
  await call('DeleteTable', { TableName })
}

const schedules = async () => {
  const client = watched(new scheduler.SchedulerClient(settings))
  const call = (name, input) => client.send(new scheduler[`${name}Command`](input))
  const one = { Name: 'js', GroupName: 'js' }
  const wake = {
    ...one, ScheduleExpression: 'rate(1 hour)', FlexibleTimeWindow: { Mode: 'OFF' }, StartDate: new Date('2098-01-01'),
    Target: { Arn: given.queue_arn, RoleArn: 'arn:aws:iam::000000000000:role/js', Input: '{}' },
  }
  await call('CreateScheduleGroup', { Name: 'js' })
  await call('CreateSchedule', wake)
  await refused(scheduler.ConflictException, call('CreateSchedule', wake))
  const got = await call('GetSchedule', one)
  holds('dates come as dates', got.StartDate.getTime() === Date.UTC(2098, 0) && got.CreationDate instanceof Date)
  await call('UpdateSchedule', { ...wake, State: 'DISABLED' })
  const listed = await call('ListSchedules', { GroupName: 'js' })
  holds('a schedule is listed', listed.Schedules.length === 1 && listed.Schedules[0].State === 'DISABLED')
  await call('DeleteSchedule', one)
  await refused(scheduler.ResourceNotFoundException, call('GetSchedule', one))
  await refused(scheduler.ValidationException, call('CreateSchedule', { ...wake, ScheduleExpression: 'soon' }))
  await call('DeleteScheduleGroup', { Name: 'js' })
}

const others = async () => {
  const manager = watched(new secrets.SecretsManagerClient(settings))
  const SecretId = given.secret
  const put = await manager.send(new secrets.PutSecretValueCommand({ SecretId, SecretString: 'js' }))
  const got = await manager.send(new secrets.GetSecretValueCommand({ SecretId }))
  holds('a secret comes back', got.SecretString === 'js' && got.VersionId === put.VersionId && got.CreatedDate instanceof Date)
  const described = await manager.send(new secrets.DescribeSecretCommand({ SecretId }))
  holds('its version is current', described.VersionIdsToStages[put.VersionId][0] === 'AWSCURRENT')
  const nobody = manager.send(new secrets.GetSecretValueCommand({ SecretId: 'nobody' }))
  await refused(secrets.ResourceNotFoundException, nobody, (error) => error.message.includes("can't find"))

  const functions = watched(new lambda.LambdaClient(settings))
  const Payload = JSON.stringify({ do: 'error' })
  const failed = await functions.send(new lambda.InvokeCommand({ FunctionName: given.function, Payload }))
  holds('a failure is told', failed.FunctionError === 'Unhandled' && JSON.parse(failed.Payload.transformToString()).errorMessage)
  await refused(lambda.ResourceNotFoundException, functions.send(new lambda.InvokeCommand({ FunctionName: 'nobody' })))

  const stacks = watched(new formation.CloudFormationClient(settings))
  const told = await stacks.send(new formation.DescribeStacksCommand({ StackName: given.stack }))
  const outputs = told.Stacks[0].Outputs.map((output) => output.OutputKey).sort()
  holds('a stack tells its outputs', outputs.join() === 'Address,Joined,Sized')
  const none = stacks.send(new formation.DescribeStacksCommand({ StackName: 'nobody' }))
  await refused(formation.CloudFormationServiceException, none, (error) => error.name === 'ValidationError')
}

for (const walk of [queues, tables, schedules, others]) {
  await walk().catch((error) => faults.push(`${walk.name}: ${error.stack}`))
}
console.log(JSON.stringify({ walked, empty: [...empty].sort(), faults }))
