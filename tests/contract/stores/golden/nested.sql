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
CREATE TABLE answered_requests (
	execution INTEGER NOT NULL, 
	answer INTEGER NOT NULL, 
	request INTEGER NOT NULL, 
	at TEXT NOT NULL, 
	PRIMARY KEY (execution, answer), 
	FOREIGN KEY(execution) REFERENCES executions ("key")
);
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
CREATE TABLE approved_tools (
	server TEXT NOT NULL, 
	tool TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	PRIMARY KEY (server, tool)
);
CREATE TABLE artifact_uses (
	digest TEXT NOT NULL, 
	execution INTEGER NOT NULL, 
	PRIMARY KEY (digest, execution), 
	FOREIGN KEY(execution) REFERENCES executions ("key")
);
CREATE TABLE batches (
	id INTEGER NOT NULL, 
	execution INTEGER NOT NULL, 
	first INTEGER NOT NULL, 
	last INTEGER NOT NULL, 
	events TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(execution) REFERENCES executions ("key")
);
INSERT INTO "batches" VALUES(1,1,1,1,'[["2026-11-30T13:38:38.196272+00:00","execution.created",{"goal":"it asks","title":"A title","plan_id":"01a22cad-cfd0-7000-9205-9dedd2eefdb2","revision":1,"plan_hash":"d225ecb27234f81b7cf93fc786407e60c20c3df8055e08f62fbf521f4783f32e","graph":{"nodes":[{"id":"each","type":"loop","name":"each","data":{"items":["a","b"],"parallel":2,"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ item }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}},{"id":"ask","type":"approval","data":{"prompt":"Good?"}}],"edges":[{"source":"first","target":"ask","data":{"channel":"flow"}},{"source":"ask","target":"second","sourceHandle":"approve","data":{"channel":"flow"}}]}}},{"id":"again","type":"while","name":"again","data":{"condition":"value.goes","initial":{"goes":true,"next":{"goes":false}},"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}"}},{"id":"ask","type":"approval","data":{"prompt":"Good?"}}],"edges":[{"source":"first","target":"ask","data":{"channel":"flow"}},{"source":"ask","target":"second","sourceHandle":"approve","data":{"channel":"flow"}}]}}},{"id":"say","type":"step","name":"say","data":{"value":"d"}},{"id":"inside","type":"inner","name":"inside","data":{"graph":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}},{"id":"ask","type":"approval","data":{"prompt":"Good?"}}],"edges":[{"source":"first","target":"ask","data":{"channel":"flow"}},{"source":"ask","target":"second","sourceHandle":"approve","data":{"channel":"flow"}}]}}},{"id":"plans","type":"planner","name":"plans","data":{"goal":"it asks"}},{"id":"last","type":"step","name":"last","data":{"value":"{{ nodes.each.output }}"}}],"edges":[{"id":"e1","source":"say","sourceHandle":"output","target":"inside","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"each","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e3","source":"again","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e4","source":"plans","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]},"options":{"max_parallel":64,"node_timeout_s":600.0,"run_timeout_s":3600.0,"max_events":50000,"max_result_bytes":33554432,"max_event_bytes":8388608,"max_state_bytes":33554432,"max_steps":10000,"max_depth":5,"budget":{"usd":5.0,"tokens":200000}},"waves":2,"created_by":{"kind":"local"}}]]');
INSERT INTO "batches" VALUES(2,1,2,7,'[["2026-11-30T13:38:38.198173+00:00","execution.started",{"waves":2}],["2026-11-30T13:38:38.198173+00:00","wave.started",{"wave":1,"nodes":["each","again","say","plans"]}],["2026-11-30T13:38:38.198173+00:00","node.started",{"wave":1},"each",1],["2026-11-30T13:38:38.198173+00:00","node.started",{"wave":1},"again",1],["2026-11-30T13:38:38.198173+00:00","node.started",{"wave":1},"say",1],["2026-11-30T13:38:38.198173+00:00","node.started",{"wave":1},"plans",1]]');
INSERT INTO "batches" VALUES(3,1,8,19,'[["2026-11-30T13:38:38.202693+00:00","node.event",{"event_type":"run_graph","data":{"key":"0","graph":"29085b2cb394662187228ed844aad5923d12380031a5541b2c5a9a7cc5ad8345","inputs":"8ab8e9a6be426a016744950880f14147d0082a6c38a92f2763bcba21e0842224","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}"}},{"id":"ask","type":"approval","name":"ask","data":{"prompt":"Good?"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"ask","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"ask","sourceHandle":"approve","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"again",1],["2026-11-30T13:38:38.202693+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"d"}},"duration_s":0.003697},"say",1],["2026-11-30T13:38:38.202693+00:00","node.event",{"event_type":"run_graph","data":{"key":"0","graph":"aa369aa4240a1f8299eb111ae2ac36a679bdcd63a7332bbd445728ca8ddd528b","inputs":"69cd17d552cb2930b7079eed7dfb23dfa6089d6a64ca8c56c5b1ed3876f38055","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ item }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}},{"id":"ask","type":"approval","name":"ask","data":{"prompt":"Good?"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"ask","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"ask","sourceHandle":"approve","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"each",1],["2026-11-30T13:38:38.202693+00:00","node.event",{"event_type":"run_graph","data":{"key":"1","graph":"aa369aa4240a1f8299eb111ae2ac36a679bdcd63a7332bbd445728ca8ddd528b","inputs":"a438bbf2f312246f9abe8df83186c75cf954ff21d1b16f30cd760e2d8a38618c"}},"each",1],["2026-11-30T13:38:38.202693+00:00","wave.started",{"wave":1,"nodes":["first"]},"again[0]"],["2026-11-30T13:38:38.202693+00:00","node.started",{"wave":1,"name":"first"},"again[0]/first",1],["2026-11-30T13:38:38.202693+00:00","wave.started",{"wave":1,"nodes":["first"]},"each[0]"],["2026-11-30T13:38:38.202693+00:00","node.started",{"wave":1,"name":"first"},"each[0]/first",1],["2026-11-30T13:38:38.202693+00:00","wave.started",{"wave":1,"nodes":["first"]},"each[1]"],["2026-11-30T13:38:38.202693+00:00","node.started",{"wave":1,"name":"first"},"each[1]/first",1],["2026-11-30T13:38:38.202693+00:00","wave.started",{"wave":2,"nodes":["inside","last"]}],["2026-11-30T13:38:38.202693+00:00","node.started",{"wave":2},"inside",1]]');
INSERT INTO "batches" VALUES(4,1,20,20,'[["2026-11-30T13:38:38.204045+00:00","node.event",{"event_type":"once","data":{"key":"plan","value":{"goal":"it asks","title":"A title","nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}},{"id":"ask","type":"approval","name":"ask","data":{"prompt":"Good?"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"ask","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"ask","sourceHandle":"approve","target":"second","targetHandle":"input","data":{"channel":"flow"}}]},"depends_on":"5063960668b74eb6d79216e9ea8161e0a1f7b7101ae084e2fe7fdb985e889623"}},"plans",1]]');
INSERT INTO "batches" VALUES(5,1,21,35,'[["2026-11-30T13:38:38.205740+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}}},"duration_s":0.001792},"again[0]/first",1],["2026-11-30T13:38:38.205740+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"a"}},"duration_s":0.001792},"each[0]/first",1],["2026-11-30T13:38:38.205740+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"b"}},"duration_s":0.001792},"each[1]/first",1],["2026-11-30T13:38:38.205740+00:00","node.event",{"event_type":"run_graph","data":{"key":"graph","graph":"af982745eb1d56bdf7ec75463d7d2552b18f133d01f14da490200e41354054df","inputs":"d827049039f82a8b65a9b0f52e637cf3bc5d1e0dec7d6198edf901a5e3dcae7d","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}},{"id":"ask","type":"approval","name":"ask","data":{"prompt":"Good?"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"ask","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"ask","sourceHandle":"approve","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"inside",1],["2026-11-30T13:38:38.205740+00:00","wave.completed",{"wave":1},"again[0]"],["2026-11-30T13:38:38.205740+00:00","wave.completed",{"wave":1},"each[0]"],["2026-11-30T13:38:38.205740+00:00","wave.completed",{"wave":1},"each[1]"],["2026-11-30T13:38:38.205740+00:00","wave.started",{"wave":1,"nodes":["first"]},"inside[graph]"],["2026-11-30T13:38:38.205740+00:00","node.started",{"wave":1,"name":"first"},"inside[graph]/first",1],["2026-11-30T13:38:38.205740+00:00","wave.started",{"wave":2,"nodes":["ask"]},"again[0]"],["2026-11-30T13:38:38.205740+00:00","node.started",{"wave":2,"name":"ask"},"again[0]/ask",1],["2026-11-30T13:38:38.205740+00:00","wave.started",{"wave":2,"nodes":["ask"]},"each[0]"],["2026-11-30T13:38:38.205740+00:00","node.started",{"wave":2,"name":"ask"},"each[0]/ask",1],["2026-11-30T13:38:38.205740+00:00","wave.started",{"wave":2,"nodes":["ask"]},"each[1]"],["2026-11-30T13:38:38.205740+00:00","node.started",{"wave":2,"name":"ask"},"each[1]/ask",1]]');
INSERT INTO "batches" VALUES(6,1,36,39,'[["2026-11-30T13:38:38.207291+00:00","node.event",{"event_type":"plan","data":{"title":"A title","hash":"af982745eb1d56bdf7ec75463d7d2552b18f133d01f14da490200e41354054df","nodes":3}},"plans",1],["2026-11-30T13:38:38.207291+00:00","node.event",{"event_type":"run_graph","data":{"key":"plan","graph":"af982745eb1d56bdf7ec75463d7d2552b18f133d01f14da490200e41354054df","inputs":"aa3357a9a6b15899b6c01b3c2b0a53c86d698f54594a23f75522bed25b595d2f"}},"plans",1],["2026-11-30T13:38:38.207291+00:00","wave.started",{"wave":1,"nodes":["first"]},"plans[plan]"],["2026-11-30T13:38:38.207291+00:00","node.started",{"wave":1,"name":"first"},"plans[plan]/first",1]]');
INSERT INTO "batches" VALUES(7,1,40,48,'[["2026-11-30T13:38:38.208228+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it asks"}},"duration_s":0.001017},"inside[graph]/first",1],["2026-11-30T13:38:38.208228+00:00","node.waiting",{"request_id":"r41","request":{"kind":"approval","prompt":"Good?","actions":["approve","reject"],"form":null,"value":{"goes":false},"editable":true},"state":{"actions":["approve","reject"],"editable":true},"duration_s":0.001017,"own_time_s":0.001017},"again[0]/ask",1],["2026-11-30T13:38:38.208228+00:00","node.waiting",{"request_id":"r42","request":{"kind":"approval","prompt":"Good?","actions":["approve","reject"],"form":null,"value":"a","editable":true},"state":{"actions":["approve","reject"],"editable":true},"duration_s":0.001017,"own_time_s":0.001017},"each[0]/ask",1],["2026-11-30T13:38:38.208228+00:00","node.waiting",{"request_id":"r43","request":{"kind":"approval","prompt":"Good?","actions":["approve","reject"],"form":null,"value":"b","editable":true},"state":{"actions":["approve","reject"],"editable":true},"duration_s":0.001017,"own_time_s":0.001017},"each[1]/ask",1],["2026-11-30T13:38:38.208228+00:00","wave.completed",{"wave":1},"inside[graph]"],["2026-11-30T13:38:38.208228+00:00","node.parked",{"duration_s":0.009232,"own_time_s":0.003697},"again",1],["2026-11-30T13:38:38.208228+00:00","node.parked",{"duration_s":0.009232,"own_time_s":0.003697},"each",1],["2026-11-30T13:38:38.208228+00:00","wave.started",{"wave":2,"nodes":["ask"]},"inside[graph]"],["2026-11-30T13:38:38.208228+00:00","node.started",{"wave":2,"name":"ask"},"inside[graph]/ask",1]]');
INSERT INTO "batches" VALUES(8,1,49,52,'[["2026-11-30T13:38:38.209300+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it asks"}},"duration_s":0.001128},"plans[plan]/first",1],["2026-11-30T13:38:38.209300+00:00","wave.completed",{"wave":1},"plans[plan]"],["2026-11-30T13:38:38.209300+00:00","wave.started",{"wave":2,"nodes":["ask"]},"plans[plan]"],["2026-11-30T13:38:38.209300+00:00","node.started",{"wave":2,"name":"ask"},"plans[plan]/ask",1]]');
INSERT INTO "batches" VALUES(9,1,53,54,'[["2026-11-30T13:38:38.209909+00:00","node.waiting",{"request_id":"r53","request":{"kind":"approval","prompt":"Good?","actions":["approve","reject"],"form":null,"value":"it asks","editable":true},"state":{"actions":["approve","reject"],"editable":true},"duration_s":0.000671,"own_time_s":0.000671},"inside[graph]/ask",1],["2026-11-30T13:38:38.209909+00:00","node.parked",{"duration_s":0.005961,"own_time_s":0.001792},"inside",1]]');
INSERT INTO "batches" VALUES(10,1,55,57,'[["2026-11-30T13:38:38.210473+00:00","node.waiting",{"request_id":"r55","request":{"kind":"approval","prompt":"Good?","actions":["approve","reject"],"form":null,"value":"it asks","editable":true},"state":{"actions":["approve","reject"],"editable":true},"duration_s":0.000609,"own_time_s":0.000609},"plans[plan]/ask",1],["2026-11-30T13:38:38.210473+00:00","node.parked",{"duration_s":0.011478,"own_time_s":0.008295},"plans",1],["2026-11-30T13:38:38.210473+00:00","execution.paused",{"reason":"waiting for an answer","kind":"waiting"}]]');
INSERT INTO "batches" VALUES(11,2,1,1,'[["2026-11-30T13:38:38.243200+00:00","execution.created",{"goal":"it failed","title":"A title","plan_id":"01a22cad-d01d-7000-a941-db9498a07916","revision":1,"plan_hash":"4d729c4a453106d6612fa12231a5a001281d477ad15b2e808a9588b73d71af40","graph":{"nodes":[{"id":"each","type":"loop","name":"each","data":{"items":["a","b"],"parallel":1,"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ item }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"again","type":"while","name":"again","data":{"condition":"value.goes","initial":{"goes":true,"next":{"goes":false}},"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"say","type":"step","name":"say","data":{"value":"d"}},{"id":"inside","type":"inner","name":"inside","data":{"graph":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"plans","type":"planner","name":"plans","data":{"goal":"it failed"}},{"id":"last","type":"step","name":"last","data":{"value":"{{ nodes.each.output }}"}}],"edges":[{"id":"e1","source":"say","sourceHandle":"output","target":"inside","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"each","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e3","source":"again","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e4","source":"plans","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]},"options":{"max_parallel":64,"node_timeout_s":600.0,"run_timeout_s":3600.0,"max_events":50000,"max_result_bytes":33554432,"max_event_bytes":8388608,"max_state_bytes":33554432,"max_steps":10000,"max_depth":5,"budget":{"usd":5.0,"tokens":200000}},"waves":2,"created_by":{"kind":"local"}}]]');
INSERT INTO "batches" VALUES(12,2,2,7,'[["2026-11-30T13:38:38.246420+00:00","execution.started",{"waves":2}],["2026-11-30T13:38:38.246420+00:00","wave.started",{"wave":1,"nodes":["each","again","say","plans"]}],["2026-11-30T13:38:38.246420+00:00","node.started",{"wave":1},"each",1],["2026-11-30T13:38:38.246420+00:00","node.started",{"wave":1},"again",1],["2026-11-30T13:38:38.246420+00:00","node.started",{"wave":1},"say",1],["2026-11-30T13:38:38.246420+00:00","node.started",{"wave":1},"plans",1]]');
INSERT INTO "batches" VALUES(13,2,8,16,'[["2026-11-30T13:38:38.248830+00:00","node.event",{"event_type":"run_graph","data":{"key":"0","graph":"821d06fddf0233713de64b103a01f5f8d5458c0c06649c2097081fbc7defae50","inputs":"8ab8e9a6be426a016744950880f14147d0082a6c38a92f2763bcba21e0842224","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"again",1],["2026-11-30T13:38:38.248830+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"d"}},"duration_s":0.001852},"say",1],["2026-11-30T13:38:38.248830+00:00","node.event",{"event_type":"run_graph","data":{"key":"0","graph":"1ee814ae9e189e27345dbe662a7608a427390d9f8ce1ac2e7fbbbe034e19d80c","inputs":"69cd17d552cb2930b7079eed7dfb23dfa6089d6a64ca8c56c5b1ed3876f38055","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ item }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"each",1],["2026-11-30T13:38:38.248830+00:00","wave.started",{"wave":1,"nodes":["first"]},"again[0]"],["2026-11-30T13:38:38.248830+00:00","node.started",{"wave":1,"name":"first"},"again[0]/first",1],["2026-11-30T13:38:38.248830+00:00","wave.started",{"wave":1,"nodes":["first"]},"each[0]"],["2026-11-30T13:38:38.248830+00:00","node.started",{"wave":1,"name":"first"},"each[0]/first",1],["2026-11-30T13:38:38.248830+00:00","wave.started",{"wave":2,"nodes":["inside","last"]}],["2026-11-30T13:38:38.248830+00:00","node.started",{"wave":2},"inside",1]]');
INSERT INTO "batches" VALUES(14,2,17,17,'[["2026-11-30T13:38:38.249930+00:00","node.event",{"event_type":"once","data":{"key":"plan","value":{"goal":"it failed","title":"A title","nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]},"depends_on":"a9c9ad57b93bf39bc6cada9f95527d7863d1a050963caa976b4082e2de29ddc9"}},"plans",1]]');
INSERT INTO "batches" VALUES(15,2,18,28,'[["2026-11-30T13:38:38.251623+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}}},"duration_s":0.001774},"again[0]/first",1],["2026-11-30T13:38:38.251623+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"a"}},"duration_s":0.001774},"each[0]/first",1],["2026-11-30T13:38:38.251623+00:00","node.event",{"event_type":"run_graph","data":{"key":"graph","graph":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","inputs":"d827049039f82a8b65a9b0f52e637cf3bc5d1e0dec7d6198edf901a5e3dcae7d","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"inside",1],["2026-11-30T13:38:38.251623+00:00","wave.completed",{"wave":1},"again[0]"],["2026-11-30T13:38:38.251623+00:00","wave.completed",{"wave":1},"each[0]"],["2026-11-30T13:38:38.251623+00:00","wave.started",{"wave":1,"nodes":["first"]},"inside[graph]"],["2026-11-30T13:38:38.251623+00:00","node.started",{"wave":1,"name":"first"},"inside[graph]/first",1],["2026-11-30T13:38:38.251623+00:00","wave.started",{"wave":2,"nodes":["second"]},"again[0]"],["2026-11-30T13:38:38.251623+00:00","node.started",{"wave":2,"name":"second"},"again[0]/second",1],["2026-11-30T13:38:38.251623+00:00","wave.started",{"wave":2,"nodes":["second"]},"each[0]"],["2026-11-30T13:38:38.251623+00:00","node.started",{"wave":2,"name":"second"},"each[0]/second",1]]');
INSERT INTO "batches" VALUES(16,2,29,32,'[["2026-11-30T13:38:38.253093+00:00","node.event",{"event_type":"plan","data":{"title":"A title","hash":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","nodes":2}},"plans",1],["2026-11-30T13:38:38.253093+00:00","node.event",{"event_type":"run_graph","data":{"key":"plan","graph":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","inputs":"7e1f033bcf8fb8b7eaa60bca100babc1c8039f152e4720ce5778ba9bb51221c8"}},"plans",1],["2026-11-30T13:38:38.253093+00:00","wave.started",{"wave":1,"nodes":["first"]},"plans[plan]"],["2026-11-30T13:38:38.253093+00:00","node.started",{"wave":1,"name":"first"},"plans[plan]/first",1]]');
INSERT INTO "batches" VALUES(17,2,33,40,'[["2026-11-30T13:38:38.253881+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it failed"}},"duration_s":0.000855},"inside[graph]/first",1],["2026-11-30T13:38:38.253881+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}}},"duration_s":0.000855},"again[0]/second",1],["2026-11-30T13:38:38.253881+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"aa"}},"duration_s":0.000855},"each[0]/second",1],["2026-11-30T13:38:38.253881+00:00","wave.completed",{"wave":1},"inside[graph]"],["2026-11-30T13:38:38.253881+00:00","wave.completed",{"wave":2},"again[0]"],["2026-11-30T13:38:38.253881+00:00","wave.completed",{"wave":2},"each[0]"],["2026-11-30T13:38:38.253881+00:00","wave.started",{"wave":2,"nodes":["second"]},"inside[graph]"],["2026-11-30T13:38:38.253881+00:00","node.started",{"wave":2,"name":"second"},"inside[graph]/second",1]]');
INSERT INTO "batches" VALUES(18,2,41,44,'[["2026-11-30T13:38:38.254605+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it failed"}},"duration_s":0.000765},"plans[plan]/first",1],["2026-11-30T13:38:38.254605+00:00","wave.completed",{"wave":1},"plans[plan]"],["2026-11-30T13:38:38.254605+00:00","wave.started",{"wave":2,"nodes":["second"]},"plans[plan]"],["2026-11-30T13:38:38.254605+00:00","node.started",{"wave":2,"name":"second"},"plans[plan]/second",1]]');
INSERT INTO "batches" VALUES(19,2,45,50,'[["2026-11-30T13:38:38.255484+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it failedit failed"}},"duration_s":0.000965},"inside[graph]/second",1],["2026-11-30T13:38:38.255484+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}},"iterations":{"type":"integer","value":1}},"duration_s":0.008506,"depends_on":"graph-5434e1b092efd2d3b25395df28abc0d98316302503f552bdb15b4eb7f1ab8a6f"},"again",1],["2026-11-30T13:38:38.255484+00:00","node.event",{"event_type":"run_graph","data":{"key":"1","graph":"1ee814ae9e189e27345dbe662a7608a427390d9f8ce1ac2e7fbbbe034e19d80c","inputs":"a438bbf2f312246f9abe8df83186c75cf954ff21d1b16f30cd760e2d8a38618c"}},"each",1],["2026-11-30T13:38:38.255484+00:00","wave.completed",{"wave":2},"inside[graph]"],["2026-11-30T13:38:38.255484+00:00","wave.started",{"wave":1,"nodes":["first"]},"each[1]"],["2026-11-30T13:38:38.255484+00:00","node.started",{"wave":1,"name":"first"},"each[1]/first",1]]');
INSERT INTO "batches" VALUES(20,2,51,52,'[["2026-11-30T13:38:38.256163+00:00","node.failed",{"error":{"code":"node-failed","message":"out of order"},"handled":false,"duration_s":0.000728},"plans[plan]/second",1],["2026-11-30T13:38:38.256163+00:00","wave.completed",{"wave":2},"plans[plan]"]]');
INSERT INTO "batches" VALUES(21,2,53,57,'[["2026-11-30T13:38:38.256760+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"b"}},"duration_s":0.000649},"each[1]/first",1],["2026-11-30T13:38:38.256760+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it failedit failed"}},"duration_s":0.006911,"depends_on":"graph-a37b0b74571be704ba35c55d6e784c7a065cd874c01299028574874863c06d96"},"inside",1],["2026-11-30T13:38:38.256760+00:00","wave.completed",{"wave":1},"each[1]"],["2026-11-30T13:38:38.256760+00:00","wave.started",{"wave":2,"nodes":["second"]},"each[1]"],["2026-11-30T13:38:38.256760+00:00","node.started",{"wave":2,"name":"second"},"each[1]/second",1]]');
INSERT INTO "batches" VALUES(22,2,58,60,'[["2026-11-30T13:38:38.257296+00:00","node.failed",{"error":{"code":"nested-run-failed","message":"node ''plans[plan]/second'' failed: out of order","cause":{"node":"plans[plan]/second","code":"node-failed","message":"out of order"}},"handled":false,"duration_s":0.010319},"plans",1],["2026-11-30T13:38:38.257296+00:00","node.blocked",{"cause":{"node":"plans","error":{"code":"nested-run-failed","message":"node ''plans[plan]/second'' failed: out of order","cause":{"node":"plans[plan]/second","code":"node-failed","message":"out of order"}}}},"last"],["2026-11-30T13:38:38.257296+00:00","wave.completed",{"wave":2}]]');
INSERT INTO "batches" VALUES(23,2,61,62,'[["2026-11-30T13:38:38.257882+00:00","node.failed",{"error":{"code":"node-failed","message":"out of order"},"handled":false,"duration_s":0.000636},"each[1]/second",1],["2026-11-30T13:38:38.257882+00:00","wave.completed",{"wave":2},"each[1]"]]');
INSERT INTO "batches" VALUES(24,2,63,65,'[["2026-11-30T13:38:38.258517+00:00","node.failed",{"error":{"code":"nested-run-failed","message":"node ''each[1]/second'' failed: out of order","cause":{"node":"each[1]/second","code":"node-failed","message":"out of order"}},"handled":false,"duration_s":0.011541},"each",1],["2026-11-30T13:38:38.258517+00:00","wave.completed",{"wave":1}],["2026-11-30T13:38:38.258517+00:00","execution.failed",{"error":{"code":"nested-run-failed","message":"node ''plans[plan]/second'' failed: out of order","cause":{"node":"plans[plan]/second","code":"node-failed","message":"out of order"},"node":"plans"},"failures":["plans","each"]}]]');
INSERT INTO "batches" VALUES(25,3,1,1,'[["2026-11-30T13:38:38.276316+00:00","execution.created",{"goal":"it completed","title":"A title","plan_id":"01a22cad-d03f-7000-9fdc-ca621a009464","revision":1,"plan_hash":"5d4f362003e9805eacd47dbb77fc862d77ca01447193b2ebc5a383a9465f66b6","graph":{"nodes":[{"id":"each","type":"loop","name":"each","data":{"items":["a","b"],"parallel":1,"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ item }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"again","type":"while","name":"again","data":{"condition":"value.goes","initial":{"goes":true,"next":{"goes":false}},"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"say","type":"step","name":"say","data":{"value":"d"}},{"id":"inside","type":"inner","name":"inside","data":{"graph":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"plans","type":"planner","name":"plans","data":{"goal":"it completed"}},{"id":"last","type":"step","name":"last","data":{"value":"{{ nodes.each.output }}"}}],"edges":[{"id":"e1","source":"say","sourceHandle":"output","target":"inside","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"each","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e3","source":"again","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e4","source":"plans","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]},"options":{"max_parallel":64,"node_timeout_s":600.0,"run_timeout_s":3600.0,"max_events":50000,"max_result_bytes":33554432,"max_event_bytes":8388608,"max_state_bytes":33554432,"max_steps":10000,"max_depth":5,"budget":{"usd":5.0,"tokens":200000}},"waves":2,"created_by":{"kind":"local"}}]]');
INSERT INTO "batches" VALUES(26,3,2,7,'[["2026-11-30T13:38:38.277441+00:00","execution.started",{"waves":2}],["2026-11-30T13:38:38.277441+00:00","wave.started",{"wave":1,"nodes":["each","again","say","plans"]}],["2026-11-30T13:38:38.277441+00:00","node.started",{"wave":1},"each",1],["2026-11-30T13:38:38.277441+00:00","node.started",{"wave":1},"again",1],["2026-11-30T13:38:38.277441+00:00","node.started",{"wave":1},"say",1],["2026-11-30T13:38:38.277441+00:00","node.started",{"wave":1},"plans",1]]');
INSERT INTO "batches" VALUES(27,3,8,16,'[["2026-11-30T13:38:38.283734+00:00","node.event",{"event_type":"run_graph","data":{"key":"0","graph":"821d06fddf0233713de64b103a01f5f8d5458c0c06649c2097081fbc7defae50","inputs":"8ab8e9a6be426a016744950880f14147d0082a6c38a92f2763bcba21e0842224","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"again",1],["2026-11-30T13:38:38.283734+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"d"}},"duration_s":0.001694},"say",1],["2026-11-30T13:38:38.283734+00:00","node.event",{"event_type":"run_graph","data":{"key":"0","graph":"1ee814ae9e189e27345dbe662a7608a427390d9f8ce1ac2e7fbbbe034e19d80c","inputs":"69cd17d552cb2930b7079eed7dfb23dfa6089d6a64ca8c56c5b1ed3876f38055","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ item }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"each",1],["2026-11-30T13:38:38.283734+00:00","wave.started",{"wave":1,"nodes":["first"]},"again[0]"],["2026-11-30T13:38:38.283734+00:00","node.started",{"wave":1,"name":"first"},"again[0]/first",1],["2026-11-30T13:38:38.283734+00:00","wave.started",{"wave":1,"nodes":["first"]},"each[0]"],["2026-11-30T13:38:38.283734+00:00","node.started",{"wave":1,"name":"first"},"each[0]/first",1],["2026-11-30T13:38:38.283734+00:00","wave.started",{"wave":2,"nodes":["inside","last"]}],["2026-11-30T13:38:38.283734+00:00","node.started",{"wave":2},"inside",1]]');
INSERT INTO "batches" VALUES(28,3,17,17,'[["2026-11-30T13:38:38.290042+00:00","node.event",{"event_type":"once","data":{"key":"plan","value":{"goal":"it completed","title":"A title","nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]},"depends_on":"7453bdf4661fa0e5370f626bb61fc3813bb0204ba12aecce5b5c542ed750b198"}},"plans",1]]');
INSERT INTO "batches" VALUES(29,3,18,28,'[["2026-11-30T13:38:38.291232+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}}},"duration_s":0.001272},"again[0]/first",1],["2026-11-30T13:38:38.291232+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"a"}},"duration_s":0.001272},"each[0]/first",1],["2026-11-30T13:38:38.291232+00:00","node.event",{"event_type":"run_graph","data":{"key":"graph","graph":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","inputs":"d827049039f82a8b65a9b0f52e637cf3bc5d1e0dec7d6198edf901a5e3dcae7d","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"inside",1],["2026-11-30T13:38:38.291232+00:00","wave.completed",{"wave":1},"again[0]"],["2026-11-30T13:38:38.291232+00:00","wave.completed",{"wave":1},"each[0]"],["2026-11-30T13:38:38.291232+00:00","wave.started",{"wave":1,"nodes":["first"]},"inside[graph]"],["2026-11-30T13:38:38.291232+00:00","node.started",{"wave":1,"name":"first"},"inside[graph]/first",1],["2026-11-30T13:38:38.291232+00:00","wave.started",{"wave":2,"nodes":["second"]},"again[0]"],["2026-11-30T13:38:38.291232+00:00","node.started",{"wave":2,"name":"second"},"again[0]/second",1],["2026-11-30T13:38:38.291232+00:00","wave.started",{"wave":2,"nodes":["second"]},"each[0]"],["2026-11-30T13:38:38.291232+00:00","node.started",{"wave":2,"name":"second"},"each[0]/second",1]]');
INSERT INTO "batches" VALUES(30,3,29,32,'[["2026-11-30T13:38:38.292512+00:00","node.event",{"event_type":"plan","data":{"title":"A title","hash":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","nodes":2}},"plans",1],["2026-11-30T13:38:38.292512+00:00","node.event",{"event_type":"run_graph","data":{"key":"plan","graph":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","inputs":"70269f0702bf724fc5f7c94b4f5d1045e7cf73b453e79405a1ddf7a8dd4c6663"}},"plans",1],["2026-11-30T13:38:38.292512+00:00","wave.started",{"wave":1,"nodes":["first"]},"plans[plan]"],["2026-11-30T13:38:38.292512+00:00","node.started",{"wave":1,"name":"first"},"plans[plan]/first",1]]');
INSERT INTO "batches" VALUES(31,3,33,40,'[["2026-11-30T13:38:38.293092+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it completed"}},"duration_s":0.000643},"inside[graph]/first",1],["2026-11-30T13:38:38.293092+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}}},"duration_s":0.000643},"again[0]/second",1],["2026-11-30T13:38:38.293092+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"aa"}},"duration_s":0.000643},"each[0]/second",1],["2026-11-30T13:38:38.293092+00:00","wave.completed",{"wave":1},"inside[graph]"],["2026-11-30T13:38:38.293092+00:00","wave.completed",{"wave":2},"again[0]"],["2026-11-30T13:38:38.293092+00:00","wave.completed",{"wave":2},"each[0]"],["2026-11-30T13:38:38.293092+00:00","wave.started",{"wave":2,"nodes":["second"]},"inside[graph]"],["2026-11-30T13:38:38.293092+00:00","node.started",{"wave":2,"name":"second"},"inside[graph]/second",1]]');
INSERT INTO "batches" VALUES(32,3,41,44,'[["2026-11-30T13:38:38.293648+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it completed"}},"duration_s":0.00059},"plans[plan]/first",1],["2026-11-30T13:38:38.293648+00:00","wave.completed",{"wave":1},"plans[plan]"],["2026-11-30T13:38:38.293648+00:00","wave.started",{"wave":2,"nodes":["second"]},"plans[plan]"],["2026-11-30T13:38:38.293648+00:00","node.started",{"wave":2,"name":"second"},"plans[plan]/second",1]]');
INSERT INTO "batches" VALUES(33,3,45,50,'[["2026-11-30T13:38:38.294396+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it completedit completed"}},"duration_s":0.000813},"inside[graph]/second",1],["2026-11-30T13:38:38.294396+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}},"iterations":{"type":"integer","value":1}},"duration_s":0.012357,"depends_on":"graph-9ba69a33272e7da3f5d894d2c2ac18ebd638d9f7f27ccbef41488697228ce8c7"},"again",1],["2026-11-30T13:38:38.294396+00:00","node.event",{"event_type":"run_graph","data":{"key":"1","graph":"1ee814ae9e189e27345dbe662a7608a427390d9f8ce1ac2e7fbbbe034e19d80c","inputs":"a438bbf2f312246f9abe8df83186c75cf954ff21d1b16f30cd760e2d8a38618c"}},"each",1],["2026-11-30T13:38:38.294396+00:00","wave.completed",{"wave":2},"inside[graph]"],["2026-11-30T13:38:38.294396+00:00","wave.started",{"wave":1,"nodes":["first"]},"each[1]"],["2026-11-30T13:38:38.294396+00:00","node.started",{"wave":1,"name":"first"},"each[1]/first",1]]');
INSERT INTO "batches" VALUES(34,3,51,52,'[["2026-11-30T13:38:38.294972+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it completedit completed"}},"duration_s":0.000619},"plans[plan]/second",1],["2026-11-30T13:38:38.294972+00:00","wave.completed",{"wave":2},"plans[plan]"]]');
INSERT INTO "batches" VALUES(35,3,53,57,'[["2026-11-30T13:38:38.295404+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"b"}},"duration_s":0.000486},"each[1]/first",1],["2026-11-30T13:38:38.295404+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it completedit completed"}},"duration_s":0.005445,"depends_on":"graph-5419720d14dbbdbf47dfd04bb01167b5b7d1e0471d7903380b7d44c6dc8310d8"},"inside",1],["2026-11-30T13:38:38.295404+00:00","wave.completed",{"wave":1},"each[1]"],["2026-11-30T13:38:38.295404+00:00","wave.started",{"wave":2,"nodes":["second"]},"each[1]"],["2026-11-30T13:38:38.295404+00:00","node.started",{"wave":2,"name":"second"},"each[1]/second",1]]');
INSERT INTO "batches" VALUES(36,3,58,58,'[["2026-11-30T13:38:38.295977+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it completedit completed"},"plan":{"type":"json","value":{"goal":"it completed","title":"A title","nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"duration_s":0.013937,"depends_on":"7453bdf4661fa0e5370f626bb61fc3813bb0204ba12aecce5b5c542ed750b198"},"plans",1]]');
INSERT INTO "batches" VALUES(37,3,59,60,'[["2026-11-30T13:38:38.296423+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"bb"}},"duration_s":0.000495},"each[1]/second",1],["2026-11-30T13:38:38.296423+00:00","wave.completed",{"wave":2},"each[1]"]]');
INSERT INTO "batches" VALUES(38,3,61,63,'[["2026-11-30T13:38:38.296868+00:00","node.completed",{"outputs":{"output":{"type":"json","value":["aa","bb"]}},"duration_s":0.01483,"depends_on":"graph-47bfa0b2c69d9ed454888c529e547a44ffe66a9be7d42fad5aa79a25a3c5a82d"},"each",1],["2026-11-30T13:38:38.296868+00:00","wave.completed",{"wave":1}],["2026-11-30T13:38:38.296868+00:00","node.started",{"wave":2},"last",1]]');
INSERT INTO "batches" VALUES(39,3,64,66,'[["2026-11-30T13:38:38.297320+00:00","node.completed",{"outputs":{"output":{"type":"any","value":["aa","bb"]}},"duration_s":0.000152},"last",1],["2026-11-30T13:38:38.297320+00:00","wave.completed",{"wave":2}],["2026-11-30T13:38:38.297320+00:00","execution.completed",{}]]');
INSERT INTO "batches" VALUES(40,4,1,1,'[["2026-11-30T13:38:38.319813+00:00","execution.created",{"goal":"it was cut off","title":"A title","plan_id":"01a22cad-d066-7000-b061-1b990daa0bd9","revision":1,"plan_hash":"bd4c387b3e95e0ac49023525711f05e7b7fa2b05fd42c23ddca09f7a198ab1d6","graph":{"nodes":[{"id":"each","type":"loop","name":"each","data":{"items":["a","b"],"parallel":1,"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ item }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"again","type":"while","name":"again","data":{"condition":"value.goes","initial":{"goes":true,"next":{"goes":false}},"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"say","type":"step","name":"say","data":{"value":"d"}},{"id":"inside","type":"inner","name":"inside","data":{"graph":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"plans","type":"planner","name":"plans","data":{"goal":"it was cut off"}},{"id":"last","type":"step","name":"last","data":{"value":"{{ nodes.each.output }}"}}],"edges":[{"id":"e1","source":"say","sourceHandle":"output","target":"inside","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"each","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e3","source":"again","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e4","source":"plans","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]},"options":{"max_parallel":64,"node_timeout_s":600.0,"run_timeout_s":3600.0,"max_events":50000,"max_result_bytes":33554432,"max_event_bytes":8388608,"max_state_bytes":33554432,"max_steps":10000,"max_depth":5,"budget":{"usd":5.0,"tokens":200000}},"waves":2,"created_by":{"kind":"local"}}]]');
INSERT INTO "batches" VALUES(41,4,2,7,'[["2026-11-30T13:38:38.321153+00:00","execution.started",{"waves":2}],["2026-11-30T13:38:38.321153+00:00","wave.started",{"wave":1,"nodes":["each","again","say","plans"]}],["2026-11-30T13:38:38.321153+00:00","node.started",{"wave":1},"each",1],["2026-11-30T13:38:38.321153+00:00","node.started",{"wave":1},"again",1],["2026-11-30T13:38:38.321153+00:00","node.started",{"wave":1},"say",1],["2026-11-30T13:38:38.321153+00:00","node.started",{"wave":1},"plans",1]]');
INSERT INTO "batches" VALUES(42,4,8,16,'[["2026-11-30T13:38:38.328035+00:00","node.event",{"event_type":"run_graph","data":{"key":"0","graph":"821d06fddf0233713de64b103a01f5f8d5458c0c06649c2097081fbc7defae50","inputs":"8ab8e9a6be426a016744950880f14147d0082a6c38a92f2763bcba21e0842224","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"again",1],["2026-11-30T13:38:38.328035+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"d"}},"duration_s":0.002022},"say",1],["2026-11-30T13:38:38.328035+00:00","node.event",{"event_type":"run_graph","data":{"key":"0","graph":"1ee814ae9e189e27345dbe662a7608a427390d9f8ce1ac2e7fbbbe034e19d80c","inputs":"69cd17d552cb2930b7079eed7dfb23dfa6089d6a64ca8c56c5b1ed3876f38055","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ item }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"each",1],["2026-11-30T13:38:38.328035+00:00","wave.started",{"wave":1,"nodes":["first"]},"again[0]"],["2026-11-30T13:38:38.328035+00:00","node.started",{"wave":1,"name":"first"},"again[0]/first",1],["2026-11-30T13:38:38.328035+00:00","wave.started",{"wave":1,"nodes":["first"]},"each[0]"],["2026-11-30T13:38:38.328035+00:00","node.started",{"wave":1,"name":"first"},"each[0]/first",1],["2026-11-30T13:38:38.328035+00:00","wave.started",{"wave":2,"nodes":["inside","last"]}],["2026-11-30T13:38:38.328035+00:00","node.started",{"wave":2},"inside",1]]');
INSERT INTO "batches" VALUES(43,4,17,17,'[["2026-11-30T13:38:38.337989+00:00","node.event",{"event_type":"once","data":{"key":"plan","value":{"goal":"it was cut off","title":"A title","nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]},"depends_on":"d4e721e86b75339fa22c5f25fbc4fcb0f987c4054fbe8329a9e8e0027a49edce"}},"plans",1]]');
INSERT INTO "batches" VALUES(44,4,18,28,'[["2026-11-30T13:38:38.340287+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}}},"duration_s":0.002386},"again[0]/first",1],["2026-11-30T13:38:38.340287+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"a"}},"duration_s":0.002386},"each[0]/first",1],["2026-11-30T13:38:38.340287+00:00","node.event",{"event_type":"run_graph","data":{"key":"graph","graph":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","inputs":"d827049039f82a8b65a9b0f52e637cf3bc5d1e0dec7d6198edf901a5e3dcae7d","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"inside",1],["2026-11-30T13:38:38.340287+00:00","wave.completed",{"wave":1},"again[0]"],["2026-11-30T13:38:38.340287+00:00","wave.completed",{"wave":1},"each[0]"],["2026-11-30T13:38:38.340287+00:00","wave.started",{"wave":1,"nodes":["first"]},"inside[graph]"],["2026-11-30T13:38:38.340287+00:00","node.started",{"wave":1,"name":"first"},"inside[graph]/first",1],["2026-11-30T13:38:38.340287+00:00","wave.started",{"wave":2,"nodes":["second"]},"again[0]"],["2026-11-30T13:38:38.340287+00:00","node.started",{"wave":2,"name":"second"},"again[0]/second",1],["2026-11-30T13:38:38.340287+00:00","wave.started",{"wave":2,"nodes":["second"]},"each[0]"],["2026-11-30T13:38:38.340287+00:00","node.started",{"wave":2,"name":"second"},"each[0]/second",1]]');
INSERT INTO "batches" VALUES(45,4,29,32,'[["2026-11-30T13:38:38.346085+00:00","node.event",{"event_type":"plan","data":{"title":"A title","hash":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","nodes":2}},"plans",1],["2026-11-30T13:38:38.346085+00:00","node.event",{"event_type":"run_graph","data":{"key":"plan","graph":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","inputs":"b502a0af5aad73bc1c1fc007ad206006326866f7f9e55afa47ea5276c4aedcba"}},"plans",1],["2026-11-30T13:38:38.346085+00:00","wave.started",{"wave":1,"nodes":["first"]},"plans[plan]"],["2026-11-30T13:38:38.346085+00:00","node.started",{"wave":1,"name":"first"},"plans[plan]/first",1]]');
INSERT INTO "batches" VALUES(46,4,33,40,'[["2026-11-30T13:38:38.350013+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it was cut off"}},"duration_s":0.004018},"inside[graph]/first",1],["2026-11-30T13:38:38.350013+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}}},"duration_s":0.004018},"again[0]/second",1],["2026-11-30T13:38:38.350013+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"aa"}},"duration_s":0.004018},"each[0]/second",1],["2026-11-30T13:38:38.350013+00:00","wave.completed",{"wave":1},"inside[graph]"],["2026-11-30T13:38:38.350013+00:00","wave.completed",{"wave":2},"again[0]"],["2026-11-30T13:38:38.350013+00:00","wave.completed",{"wave":2},"each[0]"],["2026-11-30T13:38:38.350013+00:00","wave.started",{"wave":2,"nodes":["second"]},"inside[graph]"],["2026-11-30T13:38:38.350013+00:00","node.started",{"wave":2,"name":"second"},"inside[graph]/second",1]]');
INSERT INTO "batches" VALUES(47,4,41,44,'[["2026-11-30T13:38:38.354049+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it was cut off"}},"duration_s":0.004094},"plans[plan]/first",1],["2026-11-30T13:38:38.354049+00:00","wave.completed",{"wave":1},"plans[plan]"],["2026-11-30T13:38:38.354049+00:00","wave.started",{"wave":2,"nodes":["second"]},"plans[plan]"],["2026-11-30T13:38:38.354049+00:00","node.started",{"wave":2,"name":"second"},"plans[plan]/second",1]]');
INSERT INTO "batches" VALUES(48,4,45,50,'[["2026-11-30T13:38:38.358047+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it was cut offit was cut off"}},"duration_s":0.004093},"inside[graph]/second",1],["2026-11-30T13:38:38.358047+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}},"iterations":{"type":"integer","value":1}},"duration_s":0.032033,"depends_on":"graph-9fc3223bc059e23c36226b9d430ece7b371d90d02355db7607f6ddca8a589e69"},"again",1],["2026-11-30T13:38:38.358047+00:00","node.event",{"event_type":"run_graph","data":{"key":"1","graph":"1ee814ae9e189e27345dbe662a7608a427390d9f8ce1ac2e7fbbbe034e19d80c","inputs":"a438bbf2f312246f9abe8df83186c75cf954ff21d1b16f30cd760e2d8a38618c"}},"each",1],["2026-11-30T13:38:38.358047+00:00","wave.completed",{"wave":2},"inside[graph]"],["2026-11-30T13:38:38.358047+00:00","wave.started",{"wave":1,"nodes":["first"]},"each[1]"],["2026-11-30T13:38:38.358047+00:00","node.started",{"wave":1,"name":"first"},"each[1]/first",1]]');
INSERT INTO "batches" VALUES(49,4,51,52,'[["2026-11-30T13:38:38.362024+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it was cut offit was cut off"}},"duration_s":0.004046},"plans[plan]/second",1],["2026-11-30T13:38:38.362024+00:00","wave.completed",{"wave":2},"plans[plan]"]]');
INSERT INTO "batches" VALUES(50,4,53,57,'[["2026-11-30T13:38:38.365995+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"b"}},"duration_s":0.004052},"each[1]/first",1],["2026-11-30T13:38:38.365995+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it was cut offit was cut off"}},"duration_s":0.028095,"depends_on":"graph-3855b9b1ac57af3a504bc85052d0bed6fd8e8c2afedea5601e2d7cbf0c96d61b"},"inside",1],["2026-11-30T13:38:38.365995+00:00","wave.completed",{"wave":1},"each[1]"],["2026-11-30T13:38:38.365995+00:00","wave.started",{"wave":2,"nodes":["second"]},"each[1]"],["2026-11-30T13:38:38.365995+00:00","node.started",{"wave":2,"name":"second"},"each[1]/second",1]]');
INSERT INTO "batches" VALUES(51,4,58,58,'[["2026-11-30T13:38:38.370014+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it was cut offit was cut off"},"plan":{"type":"json","value":{"goal":"it was cut off","title":"A title","nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"duration_s":0.044001,"depends_on":"d4e721e86b75339fa22c5f25fbc4fcb0f987c4054fbe8329a9e8e0027a49edce"},"plans",1]]');
CREATE TABLE calls (
	execution_id TEXT NOT NULL, 
	path TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	ordinal INTEGER NOT NULL, 
	request_hash TEXT NOT NULL, 
	reply TEXT NOT NULL, 
	PRIMARY KEY (execution_id, path, attempt, ordinal, request_hash)
);
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
CREATE TABLE execution_search (
	execution INTEGER NOT NULL, 
	search TEXT NOT NULL, 
	PRIMARY KEY (execution), 
	FOREIGN KEY(execution) REFERENCES executions ("key")
);
INSERT INTO "execution_search" VALUES(1,'
each

again

value.goes
say

d
inside

plans

it asks
last

{{ nodes.each.output }}');
INSERT INTO "execution_search" VALUES(2,'it failedit failed
each

again

value.goes
say

d
inside

plans

it failed
last

{{ nodes.each.output }}');
INSERT INTO "execution_search" VALUES(3,'it completedit completed

["aa","bb"]
each

again

value.goes
say

d
inside

plans

it completed
last

{{ nodes.each.output }}');
CREATE TABLE execution_texts (
	execution INTEGER NOT NULL, 
	title TEXT NOT NULL, 
	user_prompt TEXT NOT NULL, 
	search TEXT NOT NULL, 
	PRIMARY KEY (execution), 
	FOREIGN KEY(execution) REFERENCES executions ("key")
);
INSERT INTO "execution_texts" VALUES(1,'A title','it asks','a title
it asks');
INSERT INTO "execution_texts" VALUES(2,'A title','it failed','a title
it failed');
INSERT INTO "execution_texts" VALUES(3,'A title','it completed','a title
it completed');
INSERT INTO "execution_texts" VALUES(4,'A title','it was cut off','a title
it was cut off');
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
INSERT INTO "executions" VALUES(1,'01a22cad-cff4-7000-ae37-6d3190c11709','01a22cad-cfd0-7000-9205-9dedd2eefdb2','paused','2026-11-30T13:38:38.196272+00:00','2026-11-30T13:38:38.198173+00:00',NULL,57,1,1,1,NULL,'{"kind": "local"}',NULL,NULL,0,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(2,'01a22cad-d023-7000-b8a2-b1452ff065db','01a22cad-d01d-7000-a941-db9498a07916','failed','2026-11-30T13:38:38.243200+00:00','2026-11-30T13:38:38.246420+00:00','2026-11-30T13:38:38.258517+00:00',65,1,1,1,NULL,'{"kind": "local"}',NULL,NULL,0,NULL,0.012097,'partial');
INSERT INTO "executions" VALUES(3,'01a22cad-d044-7000-9766-ce82bcd44b34','01a22cad-d03f-7000-9fdc-ca621a009464','completed','2026-11-30T13:38:38.276316+00:00','2026-11-30T13:38:38.277441+00:00','2026-11-30T13:38:38.297320+00:00',66,1,1,1,NULL,'{"kind": "local"}',NULL,NULL,0,NULL,0.019879,NULL);
INSERT INTO "executions" VALUES(4,'01a22cad-d06f-7000-a44c-bbaeb593a8ea','01a22cad-d066-7000-b061-1b990daa0bd9','executing','2026-11-30T13:38:38.319813+00:00','2026-11-30T13:38:38.321153+00:00',NULL,0,1,1,1,NULL,'{"kind": "local"}',NULL,NULL,NULL,NULL,NULL,NULL);
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
INSERT INTO "plans" VALUES('01a22cad-cfd0-7000-9205-9dedd2eefdb2','2026-01-01T00:00:00+00:00','A title','it asks','d225ecb27234f81b7cf93fc786407e60c20c3df8055e08f62fbf521f4783f32e','
a title

it asks','{"plan_id":"01a22cad-cfd0-7000-9205-9dedd2eefdb2","user_prompt":"it asks","title":"A title","status":"draft","revision":1,"hash":"d225ecb27234f81b7cf93fc786407e60c20c3df8055e08f62fbf521f4783f32e","created_at":"2026-01-01T00:00:00+00:00","name":null,"description":"","published":[],"live_revision":1,"provider":null,"model":null,"nodes":[{"id":"each","type":"loop","name":"each","data":{"items":["a","b"],"parallel":2,"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ item }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}},{"id":"ask","type":"approval","data":{"prompt":"Good?"}}],"edges":[{"source":"first","target":"ask","data":{"channel":"flow"}},{"source":"ask","target":"second","sourceHandle":"approve","data":{"channel":"flow"}}]}}},{"id":"again","type":"while","name":"again","data":{"condition":"value.goes","initial":{"goes":true,"next":{"goes":false}},"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}"}},{"id":"ask","type":"approval","data":{"prompt":"Good?"}}],"edges":[{"source":"first","target":"ask","data":{"channel":"flow"}},{"source":"ask","target":"second","sourceHandle":"approve","data":{"channel":"flow"}}]}}},{"id":"say","type":"step","name":"say","data":{"value":"d"}},{"id":"inside","type":"inner","name":"inside","data":{"graph":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}},{"id":"ask","type":"approval","data":{"prompt":"Good?"}}],"edges":[{"source":"first","target":"ask","data":{"channel":"flow"}},{"source":"ask","target":"second","sourceHandle":"approve","data":{"channel":"flow"}}]}}},{"id":"plans","type":"planner","name":"plans","data":{"goal":"it asks"}},{"id":"last","type":"step","name":"last","data":{"value":"{{ nodes.each.output }}"}}],"edges":[{"id":"e1","source":"say","sourceHandle":"output","target":"inside","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"each","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e3","source":"again","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e4","source":"plans","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}],"diagnostics":[],"fixes":[],"questions":[],"attempts":[],"forecast":{}}',0,NULL,'',NULL,'{"kind": "local"}',NULL,NULL,'','',1,NULL,'{}');
INSERT INTO "plans" VALUES('01a22cad-d01d-7000-a941-db9498a07916','2026-01-01T00:00:00+00:00','A title','it failed','4d729c4a453106d6612fa12231a5a001281d477ad15b2e808a9588b73d71af40','
a title

it failed','{"plan_id":"01a22cad-d01d-7000-a941-db9498a07916","user_prompt":"it failed","title":"A title","status":"draft","revision":1,"hash":"4d729c4a453106d6612fa12231a5a001281d477ad15b2e808a9588b73d71af40","created_at":"2026-01-01T00:00:00+00:00","name":null,"description":"","published":[],"live_revision":1,"provider":null,"model":null,"nodes":[{"id":"each","type":"loop","name":"each","data":{"items":["a","b"],"parallel":1,"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ item }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"again","type":"while","name":"again","data":{"condition":"value.goes","initial":{"goes":true,"next":{"goes":false}},"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"say","type":"step","name":"say","data":{"value":"d"}},{"id":"inside","type":"inner","name":"inside","data":{"graph":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"plans","type":"planner","name":"plans","data":{"goal":"it failed"}},{"id":"last","type":"step","name":"last","data":{"value":"{{ nodes.each.output }}"}}],"edges":[{"id":"e1","source":"say","sourceHandle":"output","target":"inside","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"each","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e3","source":"again","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e4","source":"plans","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}],"diagnostics":[],"fixes":[],"questions":[],"attempts":[],"forecast":{}}',0,NULL,'',NULL,'{"kind": "local"}',NULL,NULL,'','',1,NULL,'{}');
INSERT INTO "plans" VALUES('01a22cad-d03f-7000-9fdc-ca621a009464','2026-01-01T00:00:00+00:00','A title','it completed','5d4f362003e9805eacd47dbb77fc862d77ca01447193b2ebc5a383a9465f66b6','
a title

it completed','{"plan_id":"01a22cad-d03f-7000-9fdc-ca621a009464","user_prompt":"it completed","title":"A title","status":"draft","revision":1,"hash":"5d4f362003e9805eacd47dbb77fc862d77ca01447193b2ebc5a383a9465f66b6","created_at":"2026-01-01T00:00:00+00:00","name":null,"description":"","published":[],"live_revision":1,"provider":null,"model":null,"nodes":[{"id":"each","type":"loop","name":"each","data":{"items":["a","b"],"parallel":1,"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ item }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"again","type":"while","name":"again","data":{"condition":"value.goes","initial":{"goes":true,"next":{"goes":false}},"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"say","type":"step","name":"say","data":{"value":"d"}},{"id":"inside","type":"inner","name":"inside","data":{"graph":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"plans","type":"planner","name":"plans","data":{"goal":"it completed"}},{"id":"last","type":"step","name":"last","data":{"value":"{{ nodes.each.output }}"}}],"edges":[{"id":"e1","source":"say","sourceHandle":"output","target":"inside","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"each","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e3","source":"again","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e4","source":"plans","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}],"diagnostics":[],"fixes":[],"questions":[],"attempts":[],"forecast":{}}',0,NULL,'',NULL,'{"kind": "local"}',NULL,NULL,'','',1,NULL,'{}');
INSERT INTO "plans" VALUES('01a22cad-d066-7000-b061-1b990daa0bd9','2026-01-01T00:00:00+00:00','A title','it was cut off','bd4c387b3e95e0ac49023525711f05e7b7fa2b05fd42c23ddca09f7a198ab1d6','
a title

it was cut off','{"plan_id":"01a22cad-d066-7000-b061-1b990daa0bd9","user_prompt":"it was cut off","title":"A title","status":"draft","revision":1,"hash":"bd4c387b3e95e0ac49023525711f05e7b7fa2b05fd42c23ddca09f7a198ab1d6","created_at":"2026-01-01T00:00:00+00:00","name":null,"description":"","published":[],"live_revision":1,"provider":null,"model":null,"nodes":[{"id":"each","type":"loop","name":"each","data":{"items":["a","b"],"parallel":1,"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ item }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"again","type":"while","name":"again","data":{"condition":"value.goes","initial":{"goes":true,"next":{"goes":false}},"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"say","type":"step","name":"say","data":{"value":"d"}},{"id":"inside","type":"inner","name":"inside","data":{"graph":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"plans","type":"planner","name":"plans","data":{"goal":"it was cut off"}},{"id":"last","type":"step","name":"last","data":{"value":"{{ nodes.each.output }}"}}],"edges":[{"id":"e1","source":"say","sourceHandle":"output","target":"inside","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"each","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e3","source":"again","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e4","source":"plans","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}],"diagnostics":[],"fixes":[],"questions":[],"attempts":[],"forecast":{}}',0,NULL,'',NULL,'{"kind": "local"}',NULL,NULL,'','',1,NULL,'{}');
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
INSERT INTO "search_signatures" VALUES(1,X'0008200418020000800000000040200000000000000000000000440000000000844000100000400040400000000000001200000000800000000000000000200000108040000000000400000080000000000000000000000080000000000000400000000002000000000000000080004128020100000000010000040000000A00180000008000400040000000000000000800000000001000000000140000000000000400000010000020200000040600010C060000000000000000080000000000012000002000002000000000000004420408000000000000080000800002000000A8040000008200000100000000002020080400A00000000000000000000000004080000000000200000000000000000000800000000000000200040000001008008000000000000010000000408004280000020000000000100000000000000000400000004100000000000A0000040010080200000000100800050000400080000000000000000200020000000000000001080400C80000000009000200100C040000100000000000010000808800420000000010000000000000000600004006800000000000000001020000000000000A00000400000000000080000111000000000000000040000000000018008000080000004420000000000040020008040000030010200000000000080020000900040080000000000000020008000000000000000005000000000000000000000000010020200000004808000000800000000040000020800000000200000000000400000000001000200000000004020000400000000000000000000000000000000004000322000200010000000000800000040010004200000800040000000010000000001000008100040100010000040800000020010000020000000000000108000000040000004000102000000000000000040000000000800088000000000001020001000080840000100010000000000000000448009002000000000000000000010000000008000040400000080014000080002000000000010000000800000001000000000022000004000240000010000000000000000200002000004000002000000001000408008000200000000000000040000000000000400200000000000000400000400004001000000000000040000420004000000000000001180002000020000088100000000000400001000020000000400610000000000000000000201000000000000008000000000200002A04200000000000000000000000000018000C008004000000000000000022040100000000200002000000040000004108080080120000210000000000000800420080000000000000840014020000000200000000010000000002001200080400020080000000000880000000010000000010800000');
INSERT INTO "search_signatures" VALUES(2,X'0008000018020000800000000040200000000000010000000000440000000000804000000000400040400000020000001200000000800000000200000020200100108060000000000400000080000000000000000000000000000000080000404000004002000000100000000080004128020000000000010000040000000A00180100008000400040000000000000000800000000001000040000040002000008000400000810000120200000040400010C020101000040000000080000000000012002000000002000001000000004420408000000000000000000800000000000A8040000008200000100000100004000000500220800800000000000000000004080000000000200001010000000000000800000000000000200040001001008008000000000000000000000408004080000020000000000100020000000000000400000004100000000000A00000400100800000000001008000000004000800010000000000002000200020000000000010044008C00000000010000000000040000100000000000110000008800420004000010000000000000000300004006800000000000000201000000000000000E0000040000000800008400001100000000000000004000000000241800800008000000042000000000000000000805000003001020000000040008000000090004008000000000000000000A020000000000000001000000000000000000000000000060200000000008000000800000000440000020800000200200000020000402000000001000200020000024000000400100000000000000800000000000004004001222000200010000000000800000040010004200000800040000000010000002001000008100040100000000040800000020010000000000000000000108000000000000000000002001000000000000040000080000000088100000000001020001000080840000100000000000000000000440009002000000000000000000000000000008000040400800080014000080000010000000010000000000000001000000000002000004000000000010000000000000000200000000004000002200000000000008008000200000000000008240000000000000400200000000000010000000000004001000000000000040000420004000000000000001180002202020000088180000002000400001000020000000400610000000000000000000201001000000000008000001000200002A04200000000000000000000000000018000C008004000000040000000802000100000000010000002000040000000108000080100000210000000000000800420080000000000000800014020004000200000000000000800022001200080400000080000000000800000000010004000000804000');
INSERT INTO "search_signatures" VALUES(3,X'80080001180200408000000000402000000000000000100004004400000000008040040000004000404000000000001012000208008000000000400000002000001080400000000004000000800000000000000000000000102000000000004080000040020000200000000000C0004528020000000000010000040000000A00180010008000400040000000000000000800000000001000000000040000000008000600000030100120200020040400010C020001000000000000080000000000012000000000002000000080080004420408000000008000000000C00000040000A8040000008200000500000000006000000400A00000000000200000020020004080000000000200001000000000000000800000000000008200040200001008008000100000000000000400408004080000020100000000100000000028000000400000006100000000000A04000400100800000000001008000000004000808010000000010002000200000000000000018004004800004000000000200000040000100000000000010000008800420000000010000000000000000300004006800000210000000201000000000000000A0000040000000040008000001108000080000000004000002002001800810028000080042000000000080000000804000003001020000000040008000000090004208000000000040000000A000000000000000001802000000000000000000000000022200000000008000000800000000840002020800000000200000200000400000000001002200000000006002000400000000000000011000000000000014004005222000200010000000000800000040010004200000800040000000010000000021000008100040100000000040800000020010020000000000000000108000000000000000000002000000000000000040000000000000088000000000001220001000090840000100008000002000000000448009002200000000000000000000000000008000040400800480014080080000010000020110000000000000000000002000002000004000000000411000000081000040200000000004120002000000000000409008000200000008000000040000000000000400200100080000080000000001004001000000000400044000420004000000080000001100002100020000088100000000000400001000020800000400610000000004000000100201400000000000008000000040200002A04202000000000000000000000000018000C008004000000000000000002000100000000200000000004140000020108080080100000210000000000000800420080000000000000800014020000000200000000000000800022001200081400000080004010000800000000010000000000800080');
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
CREATE INDEX answers_by_age ON answers (created_at);
CREATE UNIQUE INDEX chat_turns_once ON chat_turns ("key", execution_id, path);
CREATE INDEX chat_turns_in_order ON chat_turns ("key", id);
CREATE INDEX chats_by_age ON chats (created_at, chat_id);
CREATE INDEX executions_by_status ON executions (status, created_at, execution_id);
CREATE INDEX executions_by_plan ON executions (plan_id, created_at, execution_id);
CREATE INDEX executions_by_age ON executions (created_at, execution_id);
CREATE INDEX links_by_age ON links (created_at, link_id);
CREATE INDEX links_by_execution ON links (execution_id);
CREATE UNIQUE INDEX notifications_once ON notifications (target_id, execution_id, seq);
CREATE INDEX notifications_due ON notifications (status, next_at);
CREATE INDEX notifications_by_age ON notifications (created_at, notification_id);
CREATE INDEX plans_by_age ON plans (created_at, plan_id);
CREATE INDEX flows_by_age ON plans (created_at, plan_id) WHERE name IS NOT NULL;
CREATE UNIQUE INDEX plans_by_name ON plans (name_key) WHERE name_key IS NOT NULL;
CREATE INDEX spend_by_day ON spend (day);
CREATE INDEX answered_requests_by_age ON answered_requests (at);
CREATE INDEX artifact_uses_by_execution ON artifact_uses (execution);
CREATE UNIQUE INDEX batches_in_order ON batches (execution, first);
CREATE UNIQUE INDEX chat_messages_by_name ON chat_messages (message_id);
CREATE INDEX chat_messages_in_order ON chat_messages (chat_id, id);
CREATE INDEX chat_messages_open ON chat_messages (id) WHERE status IN ('starting', 'executing', 'paused');
CREATE INDEX notification_targets_by_flow ON notification_targets (plan_id);
CREATE UNIQUE INDEX triggers_by_entry ON triggers (plan_id, node_id);
CREATE INDEX triggers_by_age ON triggers (created_at, trigger_id);
CREATE UNIQUE INDEX deliveries_once ON deliveries (trigger_id, "key");
CREATE INDEX deliveries_by_age ON deliveries (trigger_id, received_at);
COMMIT;
PRAGMA user_version = 1;
