BEGIN TRANSACTION;
CREATE TABLE access_tokens (
	token_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	scopes TEXT NOT NULL, 
	flows TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	requests_per_minute INTEGER, 
	executions_per_minute INTEGER, 
	expires_at TEXT, 
	created_by TEXT, 
	last_used_at TEXT, 
	PRIMARY KEY (token_id), 
	UNIQUE (digest)
);
INSERT INTO "access_tokens" VALUES('t1','Grüße','d1','["chat"]','["01900000-0000-7000-8000-0000000000f1"]','2026-01-02T03:04:05.000000Z',1,2,'2026-01-02T03:04:06.000000Z',NULL,NULL);
INSERT INTO "access_tokens" VALUES('t2','n','d2','["run"]','["01900000-0000-7000-8000-0000000000f1"]','2026-01-02T03:04:06.000000Z',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE answered_requests (
	execution INTEGER NOT NULL, 
	answer INTEGER NOT NULL, 
	request INTEGER NOT NULL, 
	at TEXT NOT NULL, 
	PRIMARY KEY (execution, answer), 
	FOREIGN KEY(execution) REFERENCES executions ("key")
);
INSERT INTO "answered_requests" VALUES(8,6,4,'2026-01-02T03:04:06.000000Z');
CREATE TABLE answers (
	"key" TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	status INTEGER, 
	body TEXT, 
	created_at TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "answers" VALUES('key','digest','01a22b2d-61df-7000-be3e-cab514d9b5bf','01a22b2d-67de-7000-b755-66afe9544cba',201,'{}','2026-01-02T03:04:05.000000Z');
CREATE TABLE approved_tools (
	server TEXT NOT NULL, 
	tool TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	PRIMARY KEY (server, tool)
);
INSERT INTO "approved_tools" VALUES('server','tool','fingerprint');
CREATE TABLE artifact_uses (
	digest TEXT NOT NULL, 
	execution INTEGER NOT NULL, 
	PRIMARY KEY (digest, execution), 
	FOREIGN KEY(execution) REFERENCES executions ("key")
);
INSERT INTO "artifact_uses" VALUES('94bfe6f3d049c2f74b5506f7db3325ead9914e9063fc9e88274510a5aa70641f',1);
INSERT INTO "artifact_uses" VALUES('5b50574e7c317c3133e077bfa77ad5c7193420d9b74adff66336ccf7b767f3aa',1);
CREATE TABLE batches (
	id INTEGER NOT NULL, 
	execution INTEGER NOT NULL, 
	first INTEGER NOT NULL, 
	last INTEGER NOT NULL, 
	events TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(execution) REFERENCES executions ("key")
);
INSERT INTO "batches" VALUES(1,1,1,1,'[["2026-11-30T06:38:44.735073+00:00","execution.created",{"goal":"Übersicht","title":"A title","plan_id":"01900000-0000-7000-8000-000000000001","revision":1,"plan_hash":"681178d90160a6d1cd9814b2b8b0560c20f5c4c816e769814ee92f928c3f624e","graph":{"nodes":[{"id":"a","type":"text","name":"a","data":{"text":"Grüße, \"quoted\"\n and 🌊"}},{"id":"large","type":"text","name":"large","data":{"text":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}},{"id":"b","type":"text","name":"b","data":{"text":"{{ input }}"}}],"edges":[{"id":"a.output-b.input","source":"a","sourceHandle":"output","target":"b","targetHandle":"input","data":{"channel":"flow"}},{"id":"large.output-b.input","source":"large","sourceHandle":"output","target":"b","targetHandle":"input","data":{"channel":"flow"}}]},"options":{"max_parallel":64,"node_timeout_s":600.0,"run_timeout_s":3600.0,"max_events":50000,"max_result_bytes":33554432,"max_event_bytes":8388608,"max_state_bytes":33554432,"max_steps":10000,"max_depth":5,"budget":{"usd":5.0,"tokens":200000}},"waves":2,"created_by":{"kind":"local"}}]]');
INSERT INTO "batches" VALUES(2,1,2,5,'[["2026-11-30T06:38:44.739446+00:00","execution.started",{"waves":2}],["2026-11-30T06:38:44.739446+00:00","wave.started",{"wave":1,"nodes":["a","large"]}],["2026-11-30T06:38:44.739446+00:00","node.started",{"wave":1},"a",1],["2026-11-30T06:38:44.739446+00:00","node.started",{"wave":1},"large",1]]');
INSERT INTO "batches" VALUES(3,1,6,10,'[["2026-11-30T06:38:44.743689+00:00","node.completed",{"outputs":{"output":{"type":"text","value":"Grüße, \"quoted\"\n and 🌊"}},"duration_s":0.000467},"a",1],["2026-11-30T06:38:44.743689+00:00","node.completed",{"outputs":{"output":{"type":"text","artifact":"94bfe6f3d049c2f74b5506f7db3325ead9914e9063fc9e88274510a5aa70641f","bytes":2002}},"duration_s":0.000467},"large",1],["2026-11-30T06:38:44.743689+00:00","wave.completed",{"wave":1}],["2026-11-30T06:38:44.743689+00:00","wave.started",{"wave":2,"nodes":["b"]}],["2026-11-30T06:38:44.743689+00:00","node.started",{"wave":2},"b",1]]');
INSERT INTO "batches" VALUES(4,1,11,13,'[["2026-11-30T06:38:44.754948+00:00","node.completed",{"outputs":{"output":{"type":"text","artifact":"5b50574e7c317c3133e077bfa77ad5c7193420d9b74adff66336ccf7b767f3aa","bytes":2048}},"duration_s":0.000602},"b",1],["2026-11-30T06:38:44.754948+00:00","wave.completed",{"wave":2}],["2026-11-30T06:38:44.754948+00:00","execution.completed",{}]]');
INSERT INTO "batches" VALUES(5,2,1,1,'[["2026-11-30T06:38:44.997188+00:00","execution.created",{"goal":"it fails","title":"A title","plan_id":"01900000-0000-7000-8000-000000000002","revision":1,"plan_hash":"f4aa25dbe6279a4adc525e06d894df14af7866bd441968454f21ec33ba5f1960","graph":{"nodes":[{"id":"bad","type":"broken","name":"Bad","data":{}},{"id":"after","type":"text","name":"after","data":{"text":"after"}},{"id":"beside","type":"text","name":"beside","data":{"text":"beside"}}],"edges":[{"id":"bad.output-after.input","source":"bad","sourceHandle":"output","target":"after","targetHandle":"input","data":{"channel":"flow"}}]},"options":{"max_parallel":64,"node_timeout_s":600.0,"run_timeout_s":3600.0,"max_events":50000,"max_result_bytes":33554432,"max_event_bytes":8388608,"max_state_bytes":33554432,"max_steps":10000,"max_depth":5,"budget":{"usd":5.0,"tokens":200000}},"waves":2,"created_by":{"kind":"local"}}]]');
INSERT INTO "batches" VALUES(6,2,2,5,'[["2026-11-30T06:38:45.026367+00:00","execution.started",{"waves":2}],["2026-11-30T06:38:45.026367+00:00","wave.started",{"wave":1,"nodes":["bad","beside"]}],["2026-11-30T06:38:45.026367+00:00","node.started",{"wave":1},"bad",1],["2026-11-30T06:38:45.026367+00:00","node.started",{"wave":1},"beside",1]]');
INSERT INTO "batches" VALUES(7,2,6,10,'[["2026-11-30T06:38:45.053871+00:00","node.failed",{"error":{"code":"node-failed","message":"ValueError: it broke","hint":"raised at tests/support/nodes/held_nodes.py:39, in execute"},"handled":false,"duration_s":0.002011,"retryable":true,"traceback":"Traceback (most recent call last):\n  File \"tests/support/nodes/held_nodes.py\", line 39, in execute\n    raise ValueError(\"it broke\")\nValueError: it broke"},"bad",1],["2026-11-30T06:38:45.053871+00:00","node.completed",{"outputs":{"output":{"type":"text","value":"beside"}},"duration_s":0.002011},"beside",1],["2026-11-30T06:38:45.053871+00:00","node.blocked",{"cause":{"node":"bad","error":{"code":"node-failed","message":"ValueError: it broke","hint":"raised at tests/support/nodes/held_nodes.py:39, in execute"}}},"after"],["2026-11-30T06:38:45.053871+00:00","wave.completed",{"wave":1}],["2026-11-30T06:38:45.053871+00:00","execution.failed",{"error":{"code":"node-failed","message":"node ''bad'' failed: ValueError: it broke","hint":"raised at tests/support/nodes/held_nodes.py:39, in execute","node":"bad"},"failures":["bad"]}]]');
INSERT INTO "batches" VALUES(8,3,1,1,'[["2026-11-30T06:38:45.181119+00:00","execution.created",{"goal":"it stands","title":"A title","plan_id":"01900000-0000-7000-8000-000000000003","revision":1,"plan_hash":"b0f9210f6384611b52d2e9e189e0e039efcb95bd8ba1f6d32bba4f774f4a4240","graph":{"nodes":[{"id":"first","type":"text","name":"first","data":{"text":"first"}},{"id":"held","type":"held","name":"Held","data":{}},{"id":"last","type":"text","name":"last","data":{"text":"last"}}],"edges":[{"id":"first.output-held.input","source":"first","sourceHandle":"output","target":"held","targetHandle":"input","data":{"channel":"flow"}},{"id":"held.output-last.input","source":"held","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]},"options":{"max_parallel":64,"node_timeout_s":600.0,"run_timeout_s":3600.0,"max_events":50000,"max_result_bytes":33554432,"max_event_bytes":8388608,"max_state_bytes":33554432,"max_steps":10000,"max_depth":5,"budget":{"usd":5.0,"tokens":200000}},"waves":3,"created_by":{"kind":"local"}}]]');
INSERT INTO "batches" VALUES(9,3,2,4,'[["2026-11-30T06:38:45.207031+00:00","execution.started",{"waves":3}],["2026-11-30T06:38:45.207031+00:00","wave.started",{"wave":1,"nodes":["first"]}],["2026-11-30T06:38:45.207031+00:00","node.started",{"wave":1},"first",1]]');
INSERT INTO "batches" VALUES(10,3,5,8,'[["2026-11-30T06:38:45.215613+00:00","node.completed",{"outputs":{"output":{"type":"text","value":"first"}},"duration_s":0.001507},"first",1],["2026-11-30T06:38:45.215613+00:00","wave.completed",{"wave":1}],["2026-11-30T06:38:45.215613+00:00","wave.started",{"wave":2,"nodes":["held"]}],["2026-11-30T06:38:45.215613+00:00","node.started",{"wave":2},"held",1]]');
INSERT INTO "batches" VALUES(11,4,1,5,'[["2026-01-02T03:04:05.000000Z","execution.created",{"goal":"g\u0000\ud800","title":"t","graph":{"nodes":[{"id":"first","type":"text","name":"first","data":{"text":"first"}},{"id":"held","type":"held","name":"Held","data":{}},{"id":"last","type":"text","name":"last","data":{"text":"last"}}],"edges":[{"id":"first.output-held.input","source":"first","sourceHandle":"output","target":"held","targetHandle":"input","data":{"channel":"flow"}},{"id":"held.output-last.input","source":"held","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]}}],["2026-01-02T03:04:05.000000Z","execution.started",{}],["2026-01-02T03:04:05.000000Z","node.started",{"inputs":{}},"first",1],["2026-01-02T03:04:05.000000Z","node.waiting",{"request_id":"r4","request":{"kind":"question","prompt":"Which one?"}},"first",1],["2026-01-02T03:04:05.000000Z","execution.paused",{"reason":"waiting for an answer"}]]');
INSERT INTO "batches" VALUES(12,5,1,1,'[["2026-01-02T03:04:05.000000Z","execution.created",{"goal":"g\u0000\ud800","title":"t","graph":{"nodes":[{"id":"first","type":"text","name":"first","data":{"text":"first"}},{"id":"held","type":"held","name":"Held","data":{}},{"id":"last","type":"text","name":"last","data":{"text":"last"}}],"edges":[{"id":"first.output-held.input","source":"first","sourceHandle":"output","target":"held","targetHandle":"input","data":{"channel":"flow"}},{"id":"held.output-last.input","source":"held","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]}}]]');
INSERT INTO "batches" VALUES(13,6,1,1,'[["2026-01-02T03:04:05.000000Z","execution.created",{"goal":"g\u0000\ud800","title":"t","graph":{"nodes":[{"id":"first","type":"text","name":"first","data":{"text":"first"}},{"id":"held","type":"held","name":"Held","data":{}},{"id":"last","type":"text","name":"last","data":{"text":"last"}}],"edges":[{"id":"first.output-held.input","source":"first","sourceHandle":"output","target":"held","targetHandle":"input","data":{"channel":"flow"}},{"id":"held.output-last.input","source":"held","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]}}]]');
INSERT INTO "batches" VALUES(14,7,1,1,'[["2026-01-02T03:04:05.000000Z","execution.created",{"goal":"g\u0000\ud800","title":"t","graph":{"nodes":[{"id":"first","type":"text","name":"first","data":{"text":"first"}},{"id":"held","type":"held","name":"Held","data":{}},{"id":"last","type":"text","name":"last","data":{"text":"last"}}],"edges":[{"id":"first.output-held.input","source":"first","sourceHandle":"output","target":"held","targetHandle":"input","data":{"channel":"flow"}},{"id":"held.output-last.input","source":"held","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]},"plan_id":"01900000-0000-7000-8000-0000000000f1","revision":1,"flow":"T\u00e4glich"}]]');
INSERT INTO "batches" VALUES(15,8,1,5,'[["2026-01-02T03:04:05.000000Z","execution.created",{"goal":"g\u0000\ud800","title":"t","graph":{"nodes":[{"id":"first","type":"text","name":"first","data":{"text":"first"}},{"id":"held","type":"held","name":"Held","data":{}},{"id":"last","type":"text","name":"last","data":{"text":"last"}}],"edges":[{"id":"first.output-held.input","source":"first","sourceHandle":"output","target":"held","targetHandle":"input","data":{"channel":"flow"}},{"id":"held.output-last.input","source":"held","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]},"plan_id":"01900000-0000-7000-8000-0000000000f1","revision":1,"flow":"T\u00e4glich"}],["2026-01-02T03:04:05.000000Z","execution.started",{}],["2026-01-02T03:04:05.000000Z","node.started",{"inputs":{}},"first",1],["2026-01-02T03:04:05.000000Z","node.waiting",{"request_id":"r4","request":{"kind":"question","prompt":"Which one?"}},"first",1],["2026-01-02T03:04:05.000000Z","execution.paused",{"reason":"waiting for an answer"}]]');
INSERT INTO "batches" VALUES(16,8,6,7,'[["2026-01-02T03:04:06.000000Z","node.answered",{"request_id":"r4","answer":"both"},"first",1],["2026-01-02T03:04:06.000000Z","execution.cancelled",{}]]');
CREATE TABLE calls (
	execution_id TEXT NOT NULL, 
	path TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	ordinal INTEGER NOT NULL, 
	request_hash TEXT NOT NULL, 
	reply TEXT NOT NULL, 
	PRIMARY KEY (execution_id, path, attempt, ordinal, request_hash)
);
INSERT INTO "calls" VALUES('paid','a',1,0,'hash','{"text":"paid for","usage":{"input_tokens":1}}');
CREATE TABLE chat_messages (
	id INTEGER NOT NULL, 
	message_id TEXT NOT NULL, 
	chat_id TEXT NOT NULL, 
	parent_id TEXT, 
	role TEXT NOT NULL, 
	origin TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	execution_id TEXT, 
	status TEXT, 
	cursor INTEGER NOT NULL, 
	is_cancelled INTEGER NOT NULL, 
	blocks TEXT NOT NULL, 
	usage TEXT NOT NULL, 
	seed TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(chat_id) REFERENCES chats (chat_id)
);
INSERT INTO "chat_messages" VALUES(1,'asked','of flow',NULL,'user','send','2026-01-02T03:04:05.000000Z',NULL,NULL,0,0,'[{"type":"text","text":"Grüße 🌊"}]','null','[]');
INSERT INTO "chat_messages" VALUES(2,'reply','of flow','asked','assistant','send','2026-01-02T03:04:05.000000Z','x1','completed',9,0,'[{"type":"text","text":"Grüße 🌊"}]','{"totalTokens":3,"costUsd":null}','[]');
INSERT INTO "chat_messages" VALUES(3,'again','of flow','asked','assistant','continue','2026-01-02T03:04:06.000000Z','x2','starting',0,1,'[]','null','[{"type":"text","text":"Grüße 🌊"}]');
CREATE TABLE chat_turns (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	execution_id TEXT NOT NULL, 
	path TEXT NOT NULL, 
	at TEXT NOT NULL, 
	messages TEXT NOT NULL, 
	is_complete INTEGER NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "chat_turns" VALUES(1,'k','x1','chat','2026-01-02T03:04:05.000000Z','[{"role":"user","content":"Grüße"}]',0);
CREATE TABLE chats (
	chat_id TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	updated_at TEXT NOT NULL, 
	title TEXT NOT NULL, 
	plan_id TEXT, 
	plan_revision INTEGER, 
	node_id TEXT, 
	config TEXT, 
	head TEXT, 
	revision INTEGER NOT NULL, 
	search TEXT NOT NULL, 
	created_by TEXT, 
	PRIMARY KEY (chat_id)
);
INSERT INTO "chats" VALUES('of flow','2026-01-02T03:04:05.000000Z','2026-01-02T03:04:06.000000Z','Grüße','01900000-0000-7000-8000-0000000000f1',1,'a',NULL,'again',4,'grüsse
',NULL);
INSERT INTO "chats" VALUES('plain','2026-01-02T03:04:06.000000Z','2026-01-02T03:04:06.000000Z','t',NULL,NULL,NULL,'{"model":"m"}',NULL,1,'t
',NULL);
CREATE TABLE deliveries (
	id INTEGER NOT NULL, 
	trigger_id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	received_at TEXT NOT NULL, 
	execution_id TEXT NOT NULL, 
	outcome TEXT, 
	note TEXT NOT NULL, 
	reply TEXT, 
	holder TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(trigger_id) REFERENCES triggers (trigger_id)
);
INSERT INTO "deliveries" VALUES(1,'01900000-0000-7000-8000-0000000000a1','under way','2026-01-02T03:04:05.000000Z','01a22b2d-666b-7000-924c-43e516a43343',NULL,'',NULL,'01a22b2d-61df-7000-be3e-cab514d9b5bf');
INSERT INTO "deliveries" VALUES(2,'01900000-0000-7000-8000-0000000000a1','settled','2026-01-02T03:04:06.000000Z','01a22b2d-6674-7000-8190-227069e48056','answered','Grüße','{"status":202}','01a22b2d-61df-7000-be3e-cab514d9b5bf');
CREATE TABLE execution_labels (
	execution INTEGER NOT NULL, 
	name TEXT, 
	tags TEXT NOT NULL, 
	note TEXT NOT NULL, 
	starred INTEGER NOT NULL, 
	search TEXT NOT NULL, 
	PRIMARY KEY (execution), 
	FOREIGN KEY(execution) REFERENCES executions ("key")
);
INSERT INTO "execution_labels" VALUES(8,'Grüße','
a
b c
','🌊',1,'grüsse
a
b c
🌊');
CREATE TABLE execution_search (
	execution INTEGER NOT NULL, 
	search TEXT NOT NULL, 
	PRIMARY KEY (execution), 
	FOREIGN KEY(execution) REFERENCES executions ("key")
);
INSERT INTO "execution_search" VALUES(1,'["grüsse, \"quoted\"\n and 🌊","xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"]
a

grüsse, "quoted"
 and 🌊
large

xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
b

{{ input }}');
INSERT INTO "execution_search" VALUES(2,'beside
bad

after

after
beside

beside');
INSERT INTO "execution_search" VALUES(8,'
first

first
held

last

last');
CREATE TABLE execution_texts (
	execution INTEGER NOT NULL, 
	title TEXT NOT NULL, 
	user_prompt TEXT NOT NULL, 
	search TEXT NOT NULL, 
	PRIMARY KEY (execution), 
	FOREIGN KEY(execution) REFERENCES executions ("key")
);
INSERT INTO "execution_texts" VALUES(1,'A title','Übersicht','a title
übersicht');
INSERT INTO "execution_texts" VALUES(2,'A title','it fails','a title
it fails');
INSERT INTO "execution_texts" VALUES(3,'A title','it stands','a title
it stands');
INSERT INTO "execution_texts" VALUES(4,'t','g','t
g');
INSERT INTO "execution_texts" VALUES(5,'t','g','t
g');
INSERT INTO "execution_texts" VALUES(6,'t','g','t
g');
INSERT INTO "execution_texts" VALUES(7,'t','g','t
g');
INSERT INTO "execution_texts" VALUES(8,'t','g','t
g');
CREATE TABLE executions (
	"key" INTEGER NOT NULL, 
	execution_id TEXT NOT NULL, 
	plan_id TEXT, 
	status TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	started_at TEXT, 
	completed_at TEXT, 
	document_seq INTEGER NOT NULL, 
	epoch INTEGER NOT NULL, 
	queued INTEGER DEFAULT 0 NOT NULL, 
	revision INTEGER, 
	flow TEXT, 
	created_by TEXT, 
	parent_id TEXT, 
	needs TEXT, 
	tokens INTEGER, 
	cost_usd DOUBLE, 
	duration_s DOUBLE, 
	outcome TEXT, 
	PRIMARY KEY ("key"), 
	UNIQUE (execution_id)
);
INSERT INTO "executions" VALUES(1,'01a22b2d-63fe-7000-a455-7bc27e85126b','01900000-0000-7000-8000-000000000001','completed','2026-11-30T06:38:44.735073+00:00','2026-11-30T06:38:44.739446+00:00','2026-11-30T06:38:44.754948+00:00',13,1,1,1,NULL,'{"kind": "local"}',NULL,NULL,0,NULL,0.015502,NULL);
INSERT INTO "executions" VALUES(2,'01a22b2d-6505-7000-8090-e9130036bc79','01900000-0000-7000-8000-000000000002','failed','2026-11-30T06:38:44.997188+00:00','2026-11-30T06:38:45.026367+00:00','2026-11-30T06:38:45.053871+00:00',10,1,1,1,NULL,'{"kind": "local"}',NULL,NULL,0,NULL,0.027504,'partial');
INSERT INTO "executions" VALUES(3,'01a22b2d-65bb-7000-9b36-70e017b8ec4d','01900000-0000-7000-8000-000000000003','executing','2026-11-30T06:38:45.181119+00:00','2026-11-30T06:38:45.207031+00:00',NULL,0,1,1,1,NULL,'{"kind": "local"}',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(4,'paused',NULL,'paused','2026-01-02T03:04:05.000000Z','2026-01-02T03:04:05.000000Z',NULL,0,1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(5,'starting',NULL,'starting','2026-01-02T03:04:05.000000Z',NULL,NULL,0,1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(6,'queued',NULL,'starting','2026-01-02T03:04:05.000000Z',NULL,NULL,0,1,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(7,'of a flow','01900000-0000-7000-8000-0000000000f1','starting','2026-01-02T03:04:05.000000Z',NULL,NULL,0,1,0,1,'Täglich',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(8,'notified','01900000-0000-7000-8000-0000000000f1','cancelled','2026-01-02T03:04:05.000000Z','2026-01-02T03:04:05.000000Z','2026-01-02T03:04:06.000000Z',7,1,0,1,'Täglich',NULL,NULL,NULL,0,NULL,1.0,NULL);
CREATE TABLE input_sets (
	plan_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	inputs TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	updated_at TEXT NOT NULL, 
	created_by TEXT, 
	PRIMARY KEY (plan_id, name), 
	FOREIGN KEY(plan_id) REFERENCES plans (plan_id)
);
INSERT INTO "input_sets" VALUES('01900000-0000-7000-8000-0000000000f1','Grüße','{"city": "\ud83c\udf0a", "days": 2}','2026-01-02T03:04:05.000000Z','2026-01-02T03:04:06.000000Z',NULL);
CREATE TABLE links (
	link_id TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	execution_id TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	expires_at TEXT NOT NULL, 
	request_id TEXT, 
	target TEXT, 
	created_by TEXT, 
	ended TEXT, 
	PRIMARY KEY (link_id), 
	UNIQUE (digest)
);
INSERT INTO "links" VALUES('l1','d1','request','paused','2026-01-02T03:04:05.000000Z','9026-01-02T03:04:06.000000Z','r4','Grüße',NULL,NULL);
INSERT INTO "links" VALUES('l2','d2','result','paused','2026-01-02T03:04:06.000000Z','9026-01-02T03:04:06.000000Z',NULL,NULL,NULL,NULL);
CREATE TABLE notification_targets (
	target_id TEXT NOT NULL, 
	plan_id TEXT NOT NULL, 
	url TEXT NOT NULL, 
	secrets TEXT NOT NULL, 
	events TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	PRIMARY KEY (target_id), 
	FOREIGN KEY(plan_id) REFERENCES plans (plan_id)
);
INSERT INTO "notification_targets" VALUES('target','01900000-0000-7000-8000-0000000000f1','https://ö.example/x','["main"]','["execution.cancelled", "execution.waiting"]','2026-01-02T03:04:05.000000Z');
CREATE TABLE notifications (
	id INTEGER NOT NULL, 
	notification_id TEXT NOT NULL, 
	target_id TEXT NOT NULL, 
	execution_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	event TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	since TEXT NOT NULL, 
	next_at TEXT NOT NULL, 
	status TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	error TEXT NOT NULL, 
	body TEXT, 
	PRIMARY KEY (id), 
	UNIQUE (notification_id)
);
INSERT INTO "notifications" VALUES(1,'01a22b2d-6731-7000-8d38-dafb4f7921c0','target','notified',4,'execution.waiting','2026-01-02T03:04:05.000000Z','2026-01-02T03:04:05.000000Z','2026-01-02T03:04:05.000000Z','dead',9,'Grüße','{}');
INSERT INTO "notifications" VALUES(2,'01a22b2d-6741-7000-84b7-bb78b885214d','target','notified',7,'execution.cancelled','2026-01-02T03:04:06.000000Z','2026-01-02T03:04:06.000000Z','2026-01-02T03:04:06.000000Z','pending',0,'',NULL);
CREATE TABLE plans (
	plan_id TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	title TEXT NOT NULL, 
	user_prompt TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	search TEXT NOT NULL, 
	document TEXT NOT NULL, 
	edits INTEGER DEFAULT 0 NOT NULL, 
	author TEXT, 
	note TEXT DEFAULT '' NOT NULL, 
	updated_at TEXT, 
	edited_by TEXT, 
	name TEXT, 
	name_key TEXT, 
	description TEXT DEFAULT '' NOT NULL, 
	published TEXT DEFAULT '' NOT NULL, 
	sound_revision INTEGER, 
	approved_revision INTEGER, 
	approvals TEXT DEFAULT '{}' NOT NULL, 
	PRIMARY KEY (plan_id)
);
INSERT INTO "plans" VALUES('01900000-0000-7000-8000-000000000001','2026-01-01T00:00:00+00:00','A title','Übersicht','681178d90160a6d1cd9814b2b8b0560c20f5c4c816e769814ee92f928c3f624e','
a title

übersicht','{"plan_id":"01900000-0000-7000-8000-000000000001","user_prompt":"Übersicht","title":"A title","status":"draft","revision":1,"hash":"681178d90160a6d1cd9814b2b8b0560c20f5c4c816e769814ee92f928c3f624e","created_at":"2026-01-01T00:00:00+00:00","name":null,"description":"","published":[],"live_revision":1,"provider":null,"model":null,"nodes":[{"id":"a","type":"text","name":"a","data":{"text":"Grüße, \"quoted\"\n and 🌊"}},{"id":"large","type":"text","name":"large","data":{"text":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}},{"id":"b","type":"text","name":"b","data":{"text":"{{ input }}"}}],"edges":[{"id":"a.output-b.input","source":"a","sourceHandle":"output","target":"b","targetHandle":"input","data":{"channel":"flow"}},{"id":"large.output-b.input","source":"large","sourceHandle":"output","target":"b","targetHandle":"input","data":{"channel":"flow"}}],"diagnostics":[],"fixes":[],"attempts":[],"forecast":{}}',0,NULL,'',NULL,'{"kind": "local"}',NULL,NULL,'','',1,NULL,'{}');
INSERT INTO "plans" VALUES('01900000-0000-7000-8000-000000000002','2026-01-01T00:00:00+00:00','Grüße','it fails','newer','
grüsse

it fails','{"plan_id":"01900000-0000-7000-8000-000000000002","user_prompt":"it fails","title":"A title","status":"draft","revision":2,"hash":"f4aa25dbe6279a4adc525e06d894df14af7866bd441968454f21ec33ba5f1960","created_at":"2026-01-01T00:00:00+00:00","name":null,"description":"","published":[],"live_revision":1,"provider":null,"model":null,"nodes":[{"id":"bad","type":"broken","name":"Bad","data":{},"ui":{"x":1.5}}],"edges":[],"diagnostics":[],"fixes":[],"attempts":[],"forecast":{}}',2,'person','shorter 🌊','2026-01-02T03:04:06.000000Z','{"kind": "local"}',NULL,NULL,'','',1,NULL,'{}');
INSERT INTO "plans" VALUES('01900000-0000-7000-8000-000000000003','2026-01-01T00:00:00+00:00','A title','it stands','b0f9210f6384611b52d2e9e189e0e039efcb95bd8ba1f6d32bba4f774f4a4240','
a title

it stands','{"plan_id":"01900000-0000-7000-8000-000000000003","user_prompt":"it stands","title":"A title","status":"draft","revision":1,"hash":"b0f9210f6384611b52d2e9e189e0e039efcb95bd8ba1f6d32bba4f774f4a4240","created_at":"2026-01-01T00:00:00+00:00","name":null,"description":"","published":[],"live_revision":1,"provider":null,"model":null,"nodes":[{"id":"first","type":"text","name":"first","data":{"text":"first"}},{"id":"held","type":"held","name":"Held","data":{}},{"id":"last","type":"text","name":"last","data":{"text":"last"}}],"edges":[{"id":"first.output-held.input","source":"first","sourceHandle":"output","target":"held","targetHandle":"input","data":{"channel":"flow"}},{"id":"held.output-last.input","source":"held","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}],"diagnostics":[],"fixes":[],"attempts":[],"forecast":{}}',0,NULL,'',NULL,'{"kind": "local"}',NULL,NULL,'','',1,NULL,'{}');
INSERT INTO "plans" VALUES('01900000-0000-7000-8000-0000000000f1','2026-01-02T03:04:05.000000Z','Täglich','','newer','täglich
täglich
grüsse 🌊
','{"nodes":[{"id":"bad","type":"broken","name":"Bad","data":{}},{"id":"after","type":"text","name":"after","data":{"text":"after"}},{"id":"beside","type":"text","name":"beside","data":{"text":"beside"}}],"edges":[{"id":"bad.output-after.input","source":"bad","sourceHandle":"output","target":"after","targetHandle":"input","data":{"channel":"flow"}}],"diagnostics":[],"revision":2}',1,'api','','2026-01-02T03:04:06.000000Z',NULL,'Täglich','täglich','Grüße 🌊',' model  tool ',2,NULL,'{}');
CREATE TABLE revisions (
	plan_id TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	hash TEXT NOT NULL, 
	title TEXT NOT NULL, 
	author TEXT NOT NULL, 
	note TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	node_count INTEGER NOT NULL, 
	error_count INTEGER NOT NULL, 
	document TEXT NOT NULL, 
	created_by TEXT, 
	PRIMARY KEY (plan_id, revision), 
	FOREIGN KEY(plan_id) REFERENCES plans (plan_id)
);
INSERT INTO "revisions" VALUES('01900000-0000-7000-8000-0000000000f1',1,'older','Täglich','api','','2026-01-02T03:04:05.000000Z',3,0,'{"nodes":[{"id":"a","type":"text","name":"a","data":{"text":"Grüße, \"quoted\"\n and 🌊"}},{"id":"large","type":"text","name":"large","data":{"text":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}},{"id":"b","type":"text","name":"b","data":{"text":"{{ input }}"}}],"edges":[{"id":"a.output-b.input","source":"a","sourceHandle":"output","target":"b","targetHandle":"input","data":{"channel":"flow"}},{"id":"large.output-b.input","source":"large","sourceHandle":"output","target":"b","targetHandle":"input","data":{"channel":"flow"}}],"diagnostics":[],"revision":1}',NULL);
INSERT INTO "revisions" VALUES('01900000-0000-7000-8000-000000000002',1,'f4aa25dbe6279a4adc525e06d894df14af7866bd441968454f21ec33ba5f1960','A title','planner','','2026-01-02T03:04:05.000000Z',3,0,'{"nodes":[{"id":"bad","type":"broken","name":"Bad","data":{}},{"id":"after","type":"text","name":"after","data":{"text":"after"}},{"id":"beside","type":"text","name":"beside","data":{"text":"beside"}}],"edges":[{"id":"bad.output-after.input","source":"bad","sourceHandle":"output","target":"after","targetHandle":"input","data":{"channel":"flow"}}],"diagnostics":[]}',NULL);
CREATE TABLE schema_hash (
	hash TEXT NOT NULL, 
	PRIMARY KEY (hash)
);
INSERT INTO "schema_hash" VALUES('a7bedac3e31d94cfd1477dce4cf761b5adb09050e6f714e78aa0972f8ee6e7c0');
CREATE TABLE search_signatures (
	execution INTEGER NOT NULL, 
	signature BLOB NOT NULL, 
	PRIMARY KEY (execution), 
	FOREIGN KEY(execution) REFERENCES executions ("key")
);
INSERT INTO "search_signatures" VALUES(1,X'00080000100200000000000000400000000020000004200000000000280000008040000000004000080000000070000008020008010100004000400000000241001080000000000000000000800000000000001000000800100000000010044000000000000100200800000000C000692A000000200000000080054000000260080000000000400040000000000000000800000000001000002000040000000000000000000800100020000020040C00000800000000000000000000000400008400000010000000200000000000200002040C01000000000000020080100004000008140000000200000000000000000000080400000000000100001040020012004080800000000000001800000000000000000000000400008200040000000120008000100000001804000000000004000000024100020000300000000000008500408000205000001004008200000400100100000000001000000000004000820000000C00010000000000000000040008000040000800000004010000000004004000000110004000010000000000020000000010000000000002000001000084A000000000010000000000000800020009000000000000028000000000002000008000000000400000000200000040000800000004200000000000000000088000000000122000020004000800000009000200C00110000300000000020000000000000002008200000000080080000100010004202018000400000002100000000000000000208C000001021100008000000010000000100010000000000400000040000000080400000200001000000000000080120800000100080000008080000008001000400000080000000000000400000001000000000000010000004004080000002000000004000000000000010000000004000000000000000000000000000204000000002020000800000900000002020101008084000010000000000010000000040040000200080000000200000000000020200800084040080040001400000004201010002011040000080004030100000000000201008200000000001000100000000000132000000000402800A000000002000001000000000000000000008000000000000000420202000009000000408020000002001004000000040041800400004000000000000009002000000020000000100000000800200801000000000020400000000000000000800000201400000000000000040004000200002A04000000000000100000100000040000000002008C00A020000000000000000100000001000002000000042001020108000000100042200000010000040800400000000000000000000001020000000200000000000000000002000000080400020080004000800060000000000008000104084008');
INSERT INTO "search_signatures" VALUES(2,X'0008000000824000000000000040000000002000000000000000000020004000824000000000400000000000000000001002100000820000000000000000200000000020000000000280400080000000000000000000080000000000000000400000010000020000000000000080004128020000000000000080000000000040080100000080400000008000000000001800000000000001000000000000000000002004000010000220000000040000010800010000000000000000000000000000000000000000000000000000000000000800000000000000000000000004000008040000000000000100080000002000000020020000000000000000000000000000000000000000000000000020000000000000000000008200040000000000008000000000000000000000000004080000020000000000000000000000000010400000000000000004000000000400100000000000001000000000004000800000000000010000000080000000000000010040000800000000010000081000040000080010000000010000100000000000000000020000000000000000000004800000000000000001000000000008010D000000000000040000000000012000000000000000000000000000000000000808000000200000000000000000080100000000102000020004000800000011000000800000000000000200020000000000000000000200000000000000400000011000000000000000000000000000000000000000200000000000000000000000000000000010002000000000000000004401000000000000000000000000000000000010028000000000000000000000000000000000000008000000000000000000040200000400000401000000000408000400000008000000200000000001000000000400000000000000000000000000000400000000000000880000011000000200000000000400001000000000000000000000080010020000000000000000000000040000080000004008004004100000000000001000000000000000000000010000000000020000000000C0000010000000000000000200000000000000000000000001000000008000000000000110008200000000000000000200000000000000000000800802001000000000040000002400000000000000080001110008200020000000100000000000008800000800000010000400000000000000000000200400000000000000000000000200002A000000000000000000000000000000000000020080002000000000400400000102000000010002000000040000800008000000100000200000000000000800000000000000000000000001000000000200000008000000000002000000080400000080008000000020000000010000000000000000');
INSERT INTO "search_signatures" VALUES(8,X'0000000000000000000000000040000000002000000000000000000008000000800000000000000000400000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000400000000000000000000000000000000020000000000000000000040000000000080000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000008000008000000000000000000000000000001082000800000000800000000080000000000028000400000000000000000000000000000400000000000000000000000000000080000000000000001000000000000000800000001400000000000000000020000200000000000000000000000000000020020000000000200000000000000000000000000000000000000000000000000000000000001000000000000000800000000000000000000000000000000000000000000A00000000010000000000000000000100000000000000000004020000000000000000000000080000000000200000000000000000000000000002000000000000000000000080008000000000000000000000000000000040004100000000000000000000000000000008000000000010200000000000000000000000000000000000000000000002020000000800000200000000000000000000000000000400000000002000000A00000008000048000020000000000200000000000000000000001000000000000200001000000000008000000000000000000000000000001000000000000000000020C0000008001000000000080000000000000000000000000000000000000000000000000000000000000000200000000000000000000000000000000000000000000002000004000000000040000000000000000000000000000000000000000000000000000000000000000200000000000000000000000020000000004000000000000000000000001000010000000000000004014100000000000200000400000000000000100200000000400000000000400000000000000000000000000000000000200000000000000000000002000200000000000000800000080200000000000010004000040000000000000000000900000000000000008000000004000040000000000000000040040000000000800000000080000000000000000000000000000000000001000000000000000000000000000000000000800000000000000000000001000010200000000000000000000001000000000000400000010100000008000000000000000000000000000000000000000000000000000000000000000A0400000080000000800020000000000000000000000000');
CREATE TABLE spend (
	subject TEXT NOT NULL, 
	day TEXT NOT NULL, 
	provider TEXT NOT NULL, 
	model TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	plan_id TEXT, 
	calls INTEGER NOT NULL, 
	input_tokens INTEGER NOT NULL, 
	output_tokens INTEGER NOT NULL, 
	cost_usd DOUBLE, 
	unpriced INTEGER NOT NULL, 
	PRIMARY KEY (subject, day, provider, model)
);
INSERT INTO "spend" VALUES('gone','2026-01-02','p','m','run',NULL,1,2,3,NULL,1);
CREATE TABLE triggers (
	trigger_id TEXT NOT NULL, 
	plan_id TEXT NOT NULL, 
	node_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	revision INTEGER, 
	enabled INTEGER NOT NULL, 
	position TEXT NOT NULL, 
	created_by TEXT, 
	PRIMARY KEY (trigger_id), 
	FOREIGN KEY(plan_id) REFERENCES plans (plan_id)
);
INSERT INTO "triggers" VALUES('01900000-0000-7000-8000-0000000000a1','01900000-0000-7000-8000-0000000000f1','a','webhook','2026-01-02T03:04:05.000000Z',NULL,1,'later',NULL);
INSERT INTO "triggers" VALUES('other','01900000-0000-7000-8000-0000000000f1','b','webhook','2026-01-02T03:04:06.000000Z',1,0,'later',NULL);
CREATE INDEX answers_by_age ON answers (created_at);
CREATE INDEX chat_turns_in_order ON chat_turns ("key", id);
CREATE UNIQUE INDEX chat_turns_once ON chat_turns ("key", execution_id, path);
CREATE INDEX chats_by_age ON chats (created_at, chat_id);
CREATE INDEX executions_by_status ON executions (status, created_at, execution_id);
CREATE INDEX executions_by_plan ON executions (plan_id, created_at, execution_id);
CREATE INDEX executions_by_age ON executions (created_at, execution_id);
CREATE INDEX links_by_execution ON links (execution_id);
CREATE INDEX links_by_age ON links (created_at, link_id);
CREATE INDEX notifications_due ON notifications (status, next_at);
CREATE INDEX notifications_by_age ON notifications (created_at, notification_id);
CREATE UNIQUE INDEX notifications_once ON notifications (target_id, execution_id, seq);
CREATE UNIQUE INDEX plans_by_name ON plans (name_key) WHERE name_key IS NOT NULL;
CREATE INDEX plans_by_age ON plans (created_at, plan_id);
CREATE INDEX flows_by_age ON plans (created_at, plan_id) WHERE name IS NOT NULL;
CREATE INDEX spend_by_day ON spend (day);
CREATE INDEX answered_requests_by_age ON answered_requests (at);
CREATE INDEX artifact_uses_by_execution ON artifact_uses (execution);
CREATE UNIQUE INDEX batches_in_order ON batches (execution, first);
CREATE INDEX chat_messages_in_order ON chat_messages (chat_id, id);
CREATE INDEX chat_messages_open ON chat_messages (id) WHERE status IN ('starting', 'executing', 'paused');
CREATE UNIQUE INDEX chat_messages_by_name ON chat_messages (message_id);
CREATE INDEX notification_targets_by_flow ON notification_targets (plan_id);
CREATE UNIQUE INDEX triggers_by_entry ON triggers (plan_id, node_id);
CREATE INDEX triggers_by_age ON triggers (created_at, trigger_id);
CREATE UNIQUE INDEX deliveries_once ON deliveries (trigger_id, "key");
CREATE INDEX deliveries_by_age ON deliveries (trigger_id, received_at);
COMMIT;
PRAGMA user_version = 1;
