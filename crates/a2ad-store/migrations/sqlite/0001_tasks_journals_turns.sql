-- Everything the first release keeps, and columns that later ones need, so that the tables which
-- grow large are never rewritten: agents and owners, conversations, tasks, their journals and
-- snapshots, open and dead turns, request keys, holders of leases, webhooks.
--
-- Large tables have integer keys that grow, because a b-tree that is appended to costs one page
-- per commit, and one filled at random costs one page per row.

-- What belongs to the database as a whole: the schema, the secret in public ids, the next key.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY NOT NULL,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE agents (
    key INTEGER PRIMARY KEY,
    id  TEXT NOT NULL UNIQUE
) STRICT;

-- Whose tasks with which agent. Every lookup by a client starts from one of these.
CREATE TABLE scopes (
    key   INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    agent INTEGER NOT NULL,
    UNIQUE (owner, agent)
) STRICT;

-- Conversations whose names clients chose. The key is that of the task which opened the context. A
-- minted id carries it, so those that we named need no row: their tasks have the id.
CREATE TABLE contexts (
    key   INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    id    ANY NOT NULL
) STRICT;
CREATE UNIQUE INDEX contexts_named ON contexts (scope, id);

-- The head of a task. There is no index on the id: the id carries the key.
CREATE TABLE tasks (
    key       INTEGER PRIMARY KEY,
    scope     INTEGER NOT NULL,
    context   INTEGER NOT NULL,
    state     INTEGER NOT NULL,
    version   INTEGER NOT NULL,
    status_at INTEGER NOT NULL,
    bytes     INTEGER NOT NULL,
    cancel    INTEGER NOT NULL,
    id        ANY NOT NULL,
    -- The id of the context if we minted it. Every task of the context has it, so that it stays
    -- when the task that opened the context goes.
    context_id ANY,
    chain     BLOB NOT NULL,
    artifacts BLOB NOT NULL
) STRICT;
-- Lists, in their own order: by state directly, all states by merging the nine ranges.
CREATE INDEX tasks_listed ON tasks (scope, state, status_at);
-- Lists of one conversation. The task that opened it is found by its key; most have no other.
CREATE INDEX tasks_in_context ON tasks (context, status_at) WHERE context <> key;
-- Retention and expiry look for the oldest tasks at rest, whoever owns them: COMPLETED, FAILED,
-- CANCELED, INPUT_REQUIRED, REJECTED, AUTH_REQUIRED, which are 3 to 8. (A list of them would have
-- SQLite build a table of its members for every row that is written.) A task enters when it comes
-- to rest, at the end of its state's range, so the index is appended to.
CREATE INDEX tasks_at_rest ON tasks (state, status_at) WHERE state >= 3;

-- Consecutive entries of one task, as many as one commit brought. The id is the task's key shifted
-- by 22 bits plus the number of the first entry. What makes the requests that brought messages
-- recognisable comes along: number, key and body of each.
CREATE TABLE runs (
    id      INTEGER PRIMARY KEY,
    count   INTEGER NOT NULL,
    format  INTEGER NOT NULL,
    spilled INTEGER NOT NULL,
    prev    BLOB NOT NULL,
    hash    BLOB NOT NULL,
    once    BLOB,
    bytes   BLOB NOT NULL
) STRICT;
-- The bytes of runs too large for one row.
CREATE TABLE chunks (
    run   INTEGER NOT NULL,
    n     INTEGER NOT NULL,
    bytes BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX chunks_of_run ON chunks (run, n);

-- Artifacts come last, so that whoever does not want them does not read their pages.
CREATE TABLE snapshots (
    task           INTEGER PRIMARY KEY,
    version        INTEGER NOT NULL,
    hash           BLOB NOT NULL,
    artifacts_hash BLOB NOT NULL,
    marks          BLOB NOT NULL,
    body           BLOB NOT NULL,
    artifacts      BLOB NOT NULL
) STRICT;

-- Open turns only, so the table stays as small as the work that is left. States: 0 waiting,
-- 1 ready, 2 leased. The order of seq is the order within a context.
CREATE TABLE turns (
    seq        INTEGER PRIMARY KEY,
    task       INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    context    INTEGER NOT NULL,
    agent      INTEGER NOT NULL,
    state      INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    returned   INTEGER NOT NULL,
    holder     INTEGER,
    due        INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    sealed     BLOB
) STRICT;
CREATE UNIQUE INDEX turns_of_task ON turns (task, number);
CREATE INDEX turns_in_context ON turns (context, seq);
CREATE INDEX turns_ready ON turns (agent, due) WHERE state = 1;
CREATE INDEX turns_leased ON turns (holder) WHERE state = 2;

-- Turns that ran out of tries, kept for whoever wants to replay them; they go with their task.
CREATE TABLE dead_turns (
    key        INTEGER PRIMARY KEY,
    task       INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    context    INTEGER NOT NULL,
    agent      INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    returned   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    died_at    INTEGER NOT NULL,
    reason     TEXT
) STRICT;
CREATE UNIQUE INDEX dead_turns_of_task ON dead_turns (task, number);

-- Where to look for a request that is repeated: pairs of a tag, which is half of the request's key,
-- and a place, which is built like the id of a run, from the task and the entry of the message.
-- What was asked stands there, in the run. Each row of the log has the pairs of one commit. In the
-- other table they are sorted: a row has all pairs from its first tag to the next row's.
CREATE TABLE once_log (
    seq   INTEGER PRIMARY KEY,
    pairs BLOB NOT NULL
) STRICT;
CREATE TABLE once (
    first INTEGER PRIMARY KEY,
    pairs BLOB NOT NULL
) STRICT;

-- How many tasks a scope has in each state: the scope's key shifted by 4 bits plus the state.
CREATE TABLE counters (
    id INTEGER PRIMARY KEY,
    n  INTEGER NOT NULL
) STRICT;

-- AUTOINCREMENT, because the id of a holder that is gone still stands in the turns it leased.
CREATE TABLE holders (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    opened_at INTEGER NOT NULL,
    beat_at   INTEGER NOT NULL
) STRICT;

-- Webhooks: each is a cursor into its task's journal.
CREATE TABLE push_configs (
    key     INTEGER PRIMARY KEY,
    task    INTEGER NOT NULL,
    id      TEXT NOT NULL,
    url     TEXT NOT NULL,
    sealed  BLOB,
    events  INTEGER NOT NULL,
    cursor  INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    due     INTEGER NOT NULL,
    state   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX push_configs_of_task ON push_configs (task, id);
