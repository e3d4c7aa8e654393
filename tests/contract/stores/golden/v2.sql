BEGIN TRANSACTION;
CREATE TABLE batches (
	id INTEGER NOT NULL, 
	execution INTEGER NOT NULL, 
	first INTEGER NOT NULL, 
	last INTEGER NOT NULL, 
	events TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(execution) REFERENCES executions ("key")
);
INSERT INTO "batches" VALUES(1,1,1,1,'[["2026-11-22T06:32:33.387355+00:00","execution.created",{"goal":"\u00dcbersicht","title":"A title","plan_id":"01900000-0000-7000-8000-000000000001","plan_hash":"681178d90160a6d1cd9814b2b8b0560c20f5c4c816e769814ee92f928c3f624e","graph":{"nodes":[{"id":"a","type":"text","name":"a","data":{"text":"Gr\u00fc\u00dfe, \"quoted\"\n and \ud83c\udf0a"}},{"id":"large","type":"text","name":"large","data":{"text":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}},{"id":"b","type":"text","name":"b","data":{"text":"{{ input }}"}}],"edges":[{"id":"a.output-b.input","source":"a","sourceHandle":"output","target":"b","targetHandle":"input","data":{"channel":"flow"}},{"id":"large.output-b.input","source":"large","sourceHandle":"output","target":"b","targetHandle":"input","data":{"channel":"flow"}}]},"options":{"max_parallel":64,"node_timeout_s":600.0,"run_timeout_s":3600.0,"max_events":50000}},null,null]]');
INSERT INTO "batches" VALUES(2,1,2,2,'[["2026-11-22T06:32:33.409513+00:00","execution.started",{"waves":2},null,null]]');
INSERT INTO "batches" VALUES(3,1,3,3,'[["2026-11-22T06:32:33.409513+00:00","wave.started",{"wave":1,"nodes":["a","large"]},null,null]]');
INSERT INTO "batches" VALUES(4,1,4,4,'[["2026-11-22T06:32:33.409513+00:00","node.started",{"wave":1},"a",1]]');
INSERT INTO "batches" VALUES(5,1,5,5,'[["2026-11-22T06:32:33.409513+00:00","node.started",{"wave":1},"large",1]]');
INSERT INTO "batches" VALUES(6,1,6,6,'[["2026-11-22T06:32:33.410298+00:00","node.completed",{"outputs":{"output":{"type":"text","value":"Gr\u00fc\u00dfe, \"quoted\"\n and \ud83c\udf0a"}},"duration_s":0.000166},"a",1]]');
INSERT INTO "batches" VALUES(7,1,7,7,'[["2026-11-22T06:32:33.410298+00:00","node.completed",{"outputs":{"output":{"type":"text","artifact":"94bfe6f3d049c2f74b5506f7db3325ead9914e9063fc9e88274510a5aa70641f","bytes":2002}},"duration_s":0.000159},"large",1]]');
INSERT INTO "batches" VALUES(8,1,8,8,'[["2026-11-22T06:32:33.410298+00:00","wave.completed",{"wave":1},null,null]]');
INSERT INTO "batches" VALUES(9,1,9,9,'[["2026-11-22T06:32:33.410298+00:00","wave.started",{"wave":2,"nodes":["b"]},null,null]]');
INSERT INTO "batches" VALUES(10,1,10,10,'[["2026-11-22T06:32:33.410298+00:00","node.started",{"wave":2},"b",1]]');
INSERT INTO "batches" VALUES(11,1,11,11,'[["2026-11-22T06:32:33.411884+00:00","node.completed",{"outputs":{"output":{"type":"text","artifact":"7efb6ad8c31cf74ff9af11932260bbbf3fce7fe3c6b90b5db0c6b4f8dbae12f4","bytes":2064}},"duration_s":0.00014},"b",1]]');
INSERT INTO "batches" VALUES(12,1,12,12,'[["2026-11-22T06:32:33.411884+00:00","wave.completed",{"wave":2},null,null]]');
INSERT INTO "batches" VALUES(13,1,13,13,'[["2026-11-22T06:32:33.411884+00:00","execution.completed",{},null,null]]');
INSERT INTO "batches" VALUES(14,2,1,1,'[["2026-11-22T06:32:33.422451+00:00","execution.created",{"goal":"it fails","title":"A title","plan_id":"01900000-0000-7000-8000-000000000002","plan_hash":"f4aa25dbe6279a4adc525e06d894df14af7866bd441968454f21ec33ba5f1960","graph":{"nodes":[{"id":"bad","type":"broken","name":"Bad","data":{}},{"id":"after","type":"text","name":"after","data":{"text":"after"}},{"id":"beside","type":"text","name":"beside","data":{"text":"beside"}}],"edges":[{"id":"bad.output-after.input","source":"bad","sourceHandle":"output","target":"after","targetHandle":"input","data":{"channel":"flow"}}]},"options":{"max_parallel":64,"node_timeout_s":600.0,"run_timeout_s":3600.0,"max_events":50000}},null,null]]');
INSERT INTO "batches" VALUES(15,2,2,2,'[["2026-11-22T06:32:33.423204+00:00","execution.started",{"waves":2},null,null]]');
INSERT INTO "batches" VALUES(16,2,3,3,'[["2026-11-22T06:32:33.423204+00:00","wave.started",{"wave":1,"nodes":["bad","beside"]},null,null]]');
INSERT INTO "batches" VALUES(17,2,4,4,'[["2026-11-22T06:32:33.423204+00:00","node.started",{"wave":1},"bad",1]]');
INSERT INTO "batches" VALUES(18,2,5,5,'[["2026-11-22T06:32:33.423204+00:00","node.started",{"wave":1},"beside",1]]');
INSERT INTO "batches" VALUES(19,2,6,6,'[["2026-11-22T06:32:33.423814+00:00","node.failed",{"error":{"code":"node-failed","message":"ValueError: it broke"},"handled":false,"duration_s":0.000139},"bad",1]]');
INSERT INTO "batches" VALUES(20,2,7,7,'[["2026-11-22T06:32:33.423814+00:00","node.completed",{"outputs":{"output":{"type":"text","value":"beside"}},"duration_s":0.000147},"beside",1]]');
INSERT INTO "batches" VALUES(21,2,8,8,'[["2026-11-22T06:32:33.423814+00:00","node.blocked",{"cause":{"node":"bad","error":{"code":"node-failed","message":"ValueError: it broke"}}},"after",null]]');
INSERT INTO "batches" VALUES(22,2,9,9,'[["2026-11-22T06:32:33.423814+00:00","wave.completed",{"wave":1},null,null]]');
INSERT INTO "batches" VALUES(23,2,10,10,'[["2026-11-22T06:32:33.423814+00:00","execution.failed",{"error":{"code":"node-failed","message":"node ''bad'' failed: ValueError: it broke","node":"bad"},"failures":["bad"]},null,null]]');
INSERT INTO "batches" VALUES(24,3,1,1,'[["2026-11-22T06:32:33.429719+00:00","execution.created",{"goal":"it stands","title":"A title","plan_id":"01900000-0000-7000-8000-000000000003","plan_hash":"b0f9210f6384611b52d2e9e189e0e039efcb95bd8ba1f6d32bba4f774f4a4240","graph":{"nodes":[{"id":"first","type":"text","name":"first","data":{"text":"first"}},{"id":"held","type":"held","name":"Held","data":{}},{"id":"last","type":"text","name":"last","data":{"text":"last"}}],"edges":[{"id":"first.output-held.input","source":"first","sourceHandle":"output","target":"held","targetHandle":"input","data":{"channel":"flow"}},{"id":"held.output-last.input","source":"held","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]},"options":{"max_parallel":64,"node_timeout_s":600.0,"run_timeout_s":3600.0,"max_events":50000}},null,null]]');
INSERT INTO "batches" VALUES(25,3,2,2,'[["2026-11-22T06:32:33.430557+00:00","execution.started",{"waves":3},null,null]]');
INSERT INTO "batches" VALUES(26,3,3,3,'[["2026-11-22T06:32:33.430557+00:00","wave.started",{"wave":1,"nodes":["first"]},null,null]]');
INSERT INTO "batches" VALUES(27,3,4,4,'[["2026-11-22T06:32:33.430557+00:00","node.started",{"wave":1},"first",1]]');
INSERT INTO "batches" VALUES(28,3,5,5,'[["2026-11-22T06:32:33.431128+00:00","node.completed",{"outputs":{"output":{"type":"text","value":"first"}},"duration_s":9.9e-05},"first",1]]');
INSERT INTO "batches" VALUES(29,3,6,6,'[["2026-11-22T06:32:33.431128+00:00","wave.completed",{"wave":1},null,null]]');
INSERT INTO "batches" VALUES(30,3,7,7,'[["2026-11-22T06:32:33.431128+00:00","wave.started",{"wave":2,"nodes":["held"]},null,null]]');
INSERT INTO "batches" VALUES(31,3,8,8,'[["2026-11-22T06:32:33.431128+00:00","node.started",{"wave":2},"held",1]]');
INSERT INTO "batches" VALUES(32,4,1,1,'[["2026-01-02T03:04:05.000000Z","execution.created",{"goal":"g\u0000\ud800","title":"t","graph":{"nodes":[{"id":"first","type":"text","name":"first","data":{"text":"first"}},{"id":"held","type":"held","name":"Held","data":{}},{"id":"last","type":"text","name":"last","data":{"text":"last"}}],"edges":[{"id":"first.output-held.input","source":"first","sourceHandle":"output","target":"held","targetHandle":"input","data":{"channel":"flow"}},{"id":"held.output-last.input","source":"held","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]}},null,null]]');
INSERT INTO "batches" VALUES(33,4,2,2,'[["2026-01-02T03:04:05.000000Z","execution.started",{},null,null]]');
INSERT INTO "batches" VALUES(34,4,3,3,'[["2026-01-02T03:04:05.000000Z","node.started",{"inputs":{}},"first",1]]');
INSERT INTO "batches" VALUES(35,4,4,4,'[["2026-01-02T03:04:05.000000Z","node.waiting",{"request_id":"r4","request":{"kind":"question","prompt":"Which one?"}},"first",1]]');
INSERT INTO "batches" VALUES(36,4,5,5,'[["2026-01-02T03:04:05.000000Z","execution.paused",{"reason":"waiting for an answer"},null,null]]');
INSERT INTO "batches" VALUES(37,5,1,1,'[["2026-01-02T03:04:05.000000Z","execution.created",{"goal":"g\u0000\ud800","title":"t","graph":{"nodes":[{"id":"first","type":"text","name":"first","data":{"text":"first"}},{"id":"held","type":"held","name":"Held","data":{}},{"id":"last","type":"text","name":"last","data":{"text":"last"}}],"edges":[{"id":"first.output-held.input","source":"first","sourceHandle":"output","target":"held","targetHandle":"input","data":{"channel":"flow"}},{"id":"held.output-last.input","source":"held","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]}},null,null]]');
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
	PRIMARY KEY ("key"), 
	UNIQUE (execution_id)
);
INSERT INTO "executions" VALUES(1,'01a201f4-d96b-7000-88be-1dca0f1e88c2','01900000-0000-7000-8000-000000000001','completed','2026-11-22T06:32:33.387355+00:00','2026-11-22T06:32:33.409513+00:00','2026-11-22T06:32:33.411884+00:00',13,1);
INSERT INTO "executions" VALUES(2,'01a201f4-d98e-7000-afc2-7783aa55325e','01900000-0000-7000-8000-000000000002','failed','2026-11-22T06:32:33.422451+00:00','2026-11-22T06:32:33.423204+00:00','2026-11-22T06:32:33.423814+00:00',10,1);
INSERT INTO "executions" VALUES(3,'01a201f4-d995-7000-b688-9a38179bdd99','01900000-0000-7000-8000-000000000003','executing','2026-11-22T06:32:33.429719+00:00','2026-11-22T06:32:33.430557+00:00',NULL,0,1);
INSERT INTO "executions" VALUES(4,'paused',NULL,'paused','2026-01-02T03:04:05.000000Z','2026-01-02T03:04:05.000000Z',NULL,0,1);
INSERT INTO "executions" VALUES(5,'starting',NULL,'starting','2026-01-02T03:04:05.000000Z',NULL,NULL,0,1);
CREATE TABLE plans (
	plan_id TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	title TEXT NOT NULL, 
	user_prompt TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	search TEXT NOT NULL, 
	document TEXT NOT NULL, 
	PRIMARY KEY (plan_id)
);
INSERT INTO "plans" VALUES('01900000-0000-7000-8000-000000000001','2026-01-01T00:00:00+00:00','A title','Übersicht','681178d90160a6d1cd9814b2b8b0560c20f5c4c816e769814ee92f928c3f624e','a title
übersicht','{"plan_id":"01900000-0000-7000-8000-000000000001","user_prompt":"\u00dcbersicht","title":"A title","status":"draft","revision":1,"hash":"681178d90160a6d1cd9814b2b8b0560c20f5c4c816e769814ee92f928c3f624e","created_at":"2026-01-01T00:00:00+00:00","provider":null,"model":null,"nodes":[{"id":"a","type":"text","name":"a","data":{"text":"Gr\u00fc\u00dfe, \"quoted\"\n and \ud83c\udf0a"}},{"id":"large","type":"text","name":"large","data":{"text":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}},{"id":"b","type":"text","name":"b","data":{"text":"{{ input }}"}}],"edges":[{"id":"a.output-b.input","source":"a","sourceHandle":"output","target":"b","targetHandle":"input","data":{"channel":"flow"}},{"id":"large.output-b.input","source":"large","sourceHandle":"output","target":"b","targetHandle":"input","data":{"channel":"flow"}}],"diagnostics":[],"fixes":[],"attempts":[],"forecast":{}}');
INSERT INTO "plans" VALUES('01900000-0000-7000-8000-000000000002','2026-01-01T00:00:00+00:00','A title','it fails','f4aa25dbe6279a4adc525e06d894df14af7866bd441968454f21ec33ba5f1960','a title
it fails','{"plan_id":"01900000-0000-7000-8000-000000000002","user_prompt":"it fails","title":"A title","status":"draft","revision":1,"hash":"f4aa25dbe6279a4adc525e06d894df14af7866bd441968454f21ec33ba5f1960","created_at":"2026-01-01T00:00:00+00:00","provider":null,"model":null,"nodes":[{"id":"bad","type":"broken","name":"Bad","data":{}},{"id":"after","type":"text","name":"after","data":{"text":"after"}},{"id":"beside","type":"text","name":"beside","data":{"text":"beside"}}],"edges":[{"id":"bad.output-after.input","source":"bad","sourceHandle":"output","target":"after","targetHandle":"input","data":{"channel":"flow"}}],"diagnostics":[],"fixes":[],"attempts":[],"forecast":{}}');
INSERT INTO "plans" VALUES('01900000-0000-7000-8000-000000000003','2026-01-01T00:00:00+00:00','A title','it stands','b0f9210f6384611b52d2e9e189e0e039efcb95bd8ba1f6d32bba4f774f4a4240','a title
it stands','{"plan_id":"01900000-0000-7000-8000-000000000003","user_prompt":"it stands","title":"A title","status":"draft","revision":1,"hash":"b0f9210f6384611b52d2e9e189e0e039efcb95bd8ba1f6d32bba4f774f4a4240","created_at":"2026-01-01T00:00:00+00:00","provider":null,"model":null,"nodes":[{"id":"first","type":"text","name":"first","data":{"text":"first"}},{"id":"held","type":"held","name":"Held","data":{}},{"id":"last","type":"text","name":"last","data":{"text":"last"}}],"edges":[{"id":"first.output-held.input","source":"first","sourceHandle":"output","target":"held","targetHandle":"input","data":{"channel":"flow"}},{"id":"held.output-last.input","source":"held","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}],"diagnostics":[],"fixes":[],"attempts":[],"forecast":{}}');
CREATE INDEX plans_by_age ON plans (created_at, plan_id);
CREATE INDEX executions_by_age ON executions (created_at, execution_id);
CREATE INDEX executions_by_status ON executions (status);
CREATE UNIQUE INDEX batches_in_order ON batches (execution, first);
COMMIT;
PRAGMA user_version = 2;
