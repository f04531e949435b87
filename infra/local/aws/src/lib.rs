//! SQS FIFO, Scheduler, Secrets Manager, DynamoDB and Lambda on one SQLite file.
