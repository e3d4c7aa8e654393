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
INSERT INTO "batches" VALUES(1,1,1,1,'[["2026-11-30T01:09:28.178041+00:00","execution.created",{"goal":"it asks","title":"A title","plan_id":"01a229ff-eda9-7000-9a56-d68cdd5626fe","revision":1,"plan_hash":"d225ecb27234f81b7cf93fc786407e60c20c3df8055e08f62fbf521f4783f32e","graph":{"nodes":[{"id":"each","type":"loop","name":"each","data":{"items":["a","b"],"parallel":2,"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ item }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}},{"id":"ask","type":"approval","data":{"prompt":"Good?"}}],"edges":[{"source":"first","target":"ask","data":{"channel":"flow"}},{"source":"ask","target":"second","sourceHandle":"approve","data":{"channel":"flow"}}]}}},{"id":"again","type":"while","name":"again","data":{"condition":"value.goes","initial":{"goes":true,"next":{"goes":false}},"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}"}},{"id":"ask","type":"approval","data":{"prompt":"Good?"}}],"edges":[{"source":"first","target":"ask","data":{"channel":"flow"}},{"source":"ask","target":"second","sourceHandle":"approve","data":{"channel":"flow"}}]}}},{"id":"say","type":"step","name":"say","data":{"value":"d"}},{"id":"inside","type":"inner","name":"inside","data":{"graph":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}},{"id":"ask","type":"approval","data":{"prompt":"Good?"}}],"edges":[{"source":"first","target":"ask","data":{"channel":"flow"}},{"source":"ask","target":"second","sourceHandle":"approve","data":{"channel":"flow"}}]}}},{"id":"plans","type":"planner","name":"plans","data":{"goal":"it asks"}},{"id":"last","type":"step","name":"last","data":{"value":"{{ nodes.each.output }}"}}],"edges":[{"id":"e1","source":"say","sourceHandle":"output","target":"inside","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"each","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e3","source":"again","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e4","source":"plans","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]},"options":{"max_parallel":64,"node_timeout_s":600.0,"run_timeout_s":3600.0,"max_events":50000,"max_result_bytes":33554432,"max_event_bytes":8388608,"max_state_bytes":33554432,"max_steps":10000,"max_depth":5,"budget":{"usd":5.0,"tokens":200000}},"waves":2,"created_by":{"kind":"local"}}]]');
INSERT INTO "batches" VALUES(2,1,2,7,'[["2026-11-30T01:09:28.181839+00:00","execution.started",{"waves":2}],["2026-11-30T01:09:28.181839+00:00","wave.started",{"wave":1,"nodes":["each","again","say","plans"]}],["2026-11-30T01:09:28.181839+00:00","node.started",{"wave":1},"each",1],["2026-11-30T01:09:28.181839+00:00","node.started",{"wave":1},"again",1],["2026-11-30T01:09:28.181839+00:00","node.started",{"wave":1},"say",1],["2026-11-30T01:09:28.181839+00:00","node.started",{"wave":1},"plans",1]]');
INSERT INTO "batches" VALUES(3,1,8,19,'[["2026-11-30T01:09:28.193558+00:00","node.event",{"event_type":"run_graph","data":{"key":"0","graph":"29085b2cb394662187228ed844aad5923d12380031a5541b2c5a9a7cc5ad8345","inputs":"8ab8e9a6be426a016744950880f14147d0082a6c38a92f2763bcba21e0842224","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}"}},{"id":"ask","type":"approval","name":"ask","data":{"prompt":"Good?"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"ask","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"ask","sourceHandle":"approve","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"again",1],["2026-11-30T01:09:28.193558+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"d"}},"duration_s":0.009607},"say",1],["2026-11-30T01:09:28.193558+00:00","node.event",{"event_type":"run_graph","data":{"key":"0","graph":"aa369aa4240a1f8299eb111ae2ac36a679bdcd63a7332bbd445728ca8ddd528b","inputs":"69cd17d552cb2930b7079eed7dfb23dfa6089d6a64ca8c56c5b1ed3876f38055","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ item }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}},{"id":"ask","type":"approval","name":"ask","data":{"prompt":"Good?"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"ask","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"ask","sourceHandle":"approve","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"each",1],["2026-11-30T01:09:28.193558+00:00","node.event",{"event_type":"run_graph","data":{"key":"1","graph":"aa369aa4240a1f8299eb111ae2ac36a679bdcd63a7332bbd445728ca8ddd528b","inputs":"a438bbf2f312246f9abe8df83186c75cf954ff21d1b16f30cd760e2d8a38618c"}},"each",1],["2026-11-30T01:09:28.193558+00:00","wave.started",{"wave":1,"nodes":["first"]},"again[0]"],["2026-11-30T01:09:28.193558+00:00","node.started",{"wave":1,"name":"first"},"again[0]/first",1],["2026-11-30T01:09:28.193558+00:00","wave.started",{"wave":1,"nodes":["first"]},"each[0]"],["2026-11-30T01:09:28.193558+00:00","node.started",{"wave":1,"name":"first"},"each[0]/first",1],["2026-11-30T01:09:28.193558+00:00","wave.started",{"wave":1,"nodes":["first"]},"each[1]"],["2026-11-30T01:09:28.193558+00:00","node.started",{"wave":1,"name":"first"},"each[1]/first",1],["2026-11-30T01:09:28.193558+00:00","wave.started",{"wave":2,"nodes":["inside","last"]}],["2026-11-30T01:09:28.193558+00:00","node.started",{"wave":2},"inside",1]]');
INSERT INTO "batches" VALUES(4,1,20,20,'[["2026-11-30T01:09:28.197646+00:00","node.event",{"event_type":"once","data":{"key":"plan","value":{"goal":"it asks","title":"A title","nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}},{"id":"ask","type":"approval","name":"ask","data":{"prompt":"Good?"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"ask","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"ask","sourceHandle":"approve","target":"second","targetHandle":"input","data":{"channel":"flow"}}]},"depends_on":"4bedc0a9366a16338ac1c5b925b6fd72b9075dfbd1d12d608e376034a86e236d"}},"plans",1]]');
INSERT INTO "batches" VALUES(5,1,21,35,'[["2026-11-30T01:09:28.201755+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}}},"duration_s":0.004383},"again[0]/first",1],["2026-11-30T01:09:28.201755+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"a"}},"duration_s":0.004383},"each[0]/first",1],["2026-11-30T01:09:28.201755+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"b"}},"duration_s":0.004383},"each[1]/first",1],["2026-11-30T01:09:28.201755+00:00","node.event",{"event_type":"run_graph","data":{"key":"graph","graph":"af982745eb1d56bdf7ec75463d7d2552b18f133d01f14da490200e41354054df","inputs":"d827049039f82a8b65a9b0f52e637cf3bc5d1e0dec7d6198edf901a5e3dcae7d","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}},{"id":"ask","type":"approval","name":"ask","data":{"prompt":"Good?"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"ask","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"ask","sourceHandle":"approve","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"inside",1],["2026-11-30T01:09:28.201755+00:00","wave.completed",{"wave":1},"again[0]"],["2026-11-30T01:09:28.201755+00:00","wave.completed",{"wave":1},"each[0]"],["2026-11-30T01:09:28.201755+00:00","wave.completed",{"wave":1},"each[1]"],["2026-11-30T01:09:28.201755+00:00","wave.started",{"wave":1,"nodes":["first"]},"inside[graph]"],["2026-11-30T01:09:28.201755+00:00","node.started",{"wave":1,"name":"first"},"inside[graph]/first",1],["2026-11-30T01:09:28.201755+00:00","wave.started",{"wave":2,"nodes":["ask"]},"again[0]"],["2026-11-30T01:09:28.201755+00:00","node.started",{"wave":2,"name":"ask"},"again[0]/ask",1],["2026-11-30T01:09:28.201755+00:00","wave.started",{"wave":2,"nodes":["ask"]},"each[0]"],["2026-11-30T01:09:28.201755+00:00","node.started",{"wave":2,"name":"ask"},"each[0]/ask",1],["2026-11-30T01:09:28.201755+00:00","wave.started",{"wave":2,"nodes":["ask"]},"each[1]"],["2026-11-30T01:09:28.201755+00:00","node.started",{"wave":2,"name":"ask"},"each[1]/ask",1]]');
INSERT INTO "batches" VALUES(6,1,36,39,'[["2026-11-30T01:09:28.206089+00:00","node.event",{"event_type":"plan","data":{"title":"A title","hash":"af982745eb1d56bdf7ec75463d7d2552b18f133d01f14da490200e41354054df","nodes":3}},"plans",1],["2026-11-30T01:09:28.206089+00:00","node.event",{"event_type":"run_graph","data":{"key":"plan","graph":"af982745eb1d56bdf7ec75463d7d2552b18f133d01f14da490200e41354054df","inputs":"aa3357a9a6b15899b6c01b3c2b0a53c86d698f54594a23f75522bed25b595d2f"}},"plans",1],["2026-11-30T01:09:28.206089+00:00","wave.started",{"wave":1,"nodes":["first"]},"plans[plan]"],["2026-11-30T01:09:28.206089+00:00","node.started",{"wave":1,"name":"first"},"plans[plan]/first",1]]');
INSERT INTO "batches" VALUES(7,1,40,48,'[["2026-11-30T01:09:28.208466+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it asks"}},"duration_s":0.002573},"inside[graph]/first",1],["2026-11-30T01:09:28.208466+00:00","node.waiting",{"request_id":"r41","request":{"kind":"approval","prompt":"Good?","actions":["approve","reject"],"form":null,"value":{"goes":false},"editable":true},"state":{"actions":["approve","reject"],"editable":true},"duration_s":0.002573,"own_time_s":0.002573},"again[0]/ask",1],["2026-11-30T01:09:28.208466+00:00","node.waiting",{"request_id":"r42","request":{"kind":"approval","prompt":"Good?","actions":["approve","reject"],"form":null,"value":"a","editable":true},"state":{"actions":["approve","reject"],"editable":true},"duration_s":0.002573,"own_time_s":0.002573},"each[0]/ask",1],["2026-11-30T01:09:28.208466+00:00","node.waiting",{"request_id":"r43","request":{"kind":"approval","prompt":"Good?","actions":["approve","reject"],"form":null,"value":"b","editable":true},"state":{"actions":["approve","reject"],"editable":true},"duration_s":0.002573,"own_time_s":0.002573},"each[1]/ask",1],["2026-11-30T01:09:28.208466+00:00","wave.completed",{"wave":1},"inside[graph]"],["2026-11-30T01:09:28.208466+00:00","node.parked",{"duration_s":0.024518,"own_time_s":0.009607},"again",1],["2026-11-30T01:09:28.208466+00:00","node.parked",{"duration_s":0.024518,"own_time_s":0.009607},"each",1],["2026-11-30T01:09:28.208466+00:00","wave.started",{"wave":2,"nodes":["ask"]},"inside[graph]"],["2026-11-30T01:09:28.208466+00:00","node.started",{"wave":2,"name":"ask"},"inside[graph]/ask",1]]');
INSERT INTO "batches" VALUES(8,1,49,52,'[["2026-11-30T01:09:28.211002+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it asks"}},"duration_s":0.002615},"plans[plan]/first",1],["2026-11-30T01:09:28.211002+00:00","wave.completed",{"wave":1},"plans[plan]"],["2026-11-30T01:09:28.211002+00:00","wave.started",{"wave":2,"nodes":["ask"]},"plans[plan]"],["2026-11-30T01:09:28.211002+00:00","node.started",{"wave":2,"name":"ask"},"plans[plan]/ask",1]]');
INSERT INTO "batches" VALUES(9,1,53,54,'[["2026-11-30T01:09:28.212556+00:00","node.waiting",{"request_id":"r53","request":{"kind":"approval","prompt":"Good?","actions":["approve","reject"],"form":null,"value":"it asks","editable":true},"state":{"actions":["approve","reject"],"editable":true},"duration_s":0.001684,"own_time_s":0.001684},"inside[graph]/ask",1],["2026-11-30T01:09:28.212556+00:00","node.parked",{"duration_s":0.015186,"own_time_s":0.004383},"inside",1]]');
INSERT INTO "batches" VALUES(10,1,55,57,'[["2026-11-30T01:09:28.213965+00:00","node.waiting",{"request_id":"r55","request":{"kind":"approval","prompt":"Good?","actions":["approve","reject"],"form":null,"value":"it asks","editable":true},"state":{"actions":["approve","reject"],"editable":true},"duration_s":0.001493,"own_time_s":0.001493},"plans[plan]/ask",1],["2026-11-30T01:09:28.213965+00:00","node.parked",{"duration_s":0.030018,"own_time_s":0.022139},"plans",1],["2026-11-30T01:09:28.213965+00:00","execution.paused",{"reason":"waiting for an answer","kind":"waiting"}]]');
INSERT INTO "batches" VALUES(11,2,1,1,'[["2026-11-30T01:09:28.287968+00:00","execution.created",{"goal":"it failed","title":"A title","plan_id":"01a229ff-ee56-7000-a3e8-946cd3baa445","revision":1,"plan_hash":"4d729c4a453106d6612fa12231a5a001281d477ad15b2e808a9588b73d71af40","graph":{"nodes":[{"id":"each","type":"loop","name":"each","data":{"items":["a","b"],"parallel":1,"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ item }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"again","type":"while","name":"again","data":{"condition":"value.goes","initial":{"goes":true,"next":{"goes":false}},"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"say","type":"step","name":"say","data":{"value":"d"}},{"id":"inside","type":"inner","name":"inside","data":{"graph":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"plans","type":"planner","name":"plans","data":{"goal":"it failed"}},{"id":"last","type":"step","name":"last","data":{"value":"{{ nodes.each.output }}"}}],"edges":[{"id":"e1","source":"say","sourceHandle":"output","target":"inside","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"each","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e3","source":"again","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e4","source":"plans","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]},"options":{"max_parallel":64,"node_timeout_s":600.0,"run_timeout_s":3600.0,"max_events":50000,"max_result_bytes":33554432,"max_event_bytes":8388608,"max_state_bytes":33554432,"max_steps":10000,"max_depth":5,"budget":{"usd":5.0,"tokens":200000}},"waves":2,"created_by":{"kind":"local"}}]]');
INSERT INTO "batches" VALUES(12,2,2,7,'[["2026-11-30T01:09:28.291571+00:00","execution.started",{"waves":2}],["2026-11-30T01:09:28.291571+00:00","wave.started",{"wave":1,"nodes":["each","again","say","plans"]}],["2026-11-30T01:09:28.291571+00:00","node.started",{"wave":1},"each",1],["2026-11-30T01:09:28.291571+00:00","node.started",{"wave":1},"again",1],["2026-11-30T01:09:28.291571+00:00","node.started",{"wave":1},"say",1],["2026-11-30T01:09:28.291571+00:00","node.started",{"wave":1},"plans",1]]');
INSERT INTO "batches" VALUES(13,2,8,16,'[["2026-11-30T01:09:28.296835+00:00","node.event",{"event_type":"run_graph","data":{"key":"0","graph":"821d06fddf0233713de64b103a01f5f8d5458c0c06649c2097081fbc7defae50","inputs":"8ab8e9a6be426a016744950880f14147d0082a6c38a92f2763bcba21e0842224","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"again",1],["2026-11-30T01:09:28.296835+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"d"}},"duration_s":0.003714},"say",1],["2026-11-30T01:09:28.296835+00:00","node.event",{"event_type":"run_graph","data":{"key":"0","graph":"1ee814ae9e189e27345dbe662a7608a427390d9f8ce1ac2e7fbbbe034e19d80c","inputs":"69cd17d552cb2930b7079eed7dfb23dfa6089d6a64ca8c56c5b1ed3876f38055","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ item }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"each",1],["2026-11-30T01:09:28.296835+00:00","wave.started",{"wave":1,"nodes":["first"]},"again[0]"],["2026-11-30T01:09:28.296835+00:00","node.started",{"wave":1,"name":"first"},"again[0]/first",1],["2026-11-30T01:09:28.296835+00:00","wave.started",{"wave":1,"nodes":["first"]},"each[0]"],["2026-11-30T01:09:28.296835+00:00","node.started",{"wave":1,"name":"first"},"each[0]/first",1],["2026-11-30T01:09:28.296835+00:00","wave.started",{"wave":2,"nodes":["inside","last"]}],["2026-11-30T01:09:28.296835+00:00","node.started",{"wave":2},"inside",1]]');
INSERT INTO "batches" VALUES(14,2,17,17,'[["2026-11-30T01:09:28.299308+00:00","node.event",{"event_type":"once","data":{"key":"plan","value":{"goal":"it failed","title":"A title","nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]},"depends_on":"cb23172ea95643b28b281a39c041a07ee169fdf6f171e65cb3a0bf6e350af964"}},"plans",1]]');
INSERT INTO "batches" VALUES(15,2,18,28,'[["2026-11-30T01:09:28.302493+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}}},"duration_s":0.003367},"again[0]/first",1],["2026-11-30T01:09:28.302493+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"a"}},"duration_s":0.003367},"each[0]/first",1],["2026-11-30T01:09:28.302493+00:00","node.event",{"event_type":"run_graph","data":{"key":"graph","graph":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","inputs":"d827049039f82a8b65a9b0f52e637cf3bc5d1e0dec7d6198edf901a5e3dcae7d","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"inside",1],["2026-11-30T01:09:28.302493+00:00","wave.completed",{"wave":1},"again[0]"],["2026-11-30T01:09:28.302493+00:00","wave.completed",{"wave":1},"each[0]"],["2026-11-30T01:09:28.302493+00:00","wave.started",{"wave":1,"nodes":["first"]},"inside[graph]"],["2026-11-30T01:09:28.302493+00:00","node.started",{"wave":1,"name":"first"},"inside[graph]/first",1],["2026-11-30T01:09:28.302493+00:00","wave.started",{"wave":2,"nodes":["second"]},"again[0]"],["2026-11-30T01:09:28.302493+00:00","node.started",{"wave":2,"name":"second"},"again[0]/second",1],["2026-11-30T01:09:28.302493+00:00","wave.started",{"wave":2,"nodes":["second"]},"each[0]"],["2026-11-30T01:09:28.302493+00:00","node.started",{"wave":2,"name":"second"},"each[0]/second",1]]');
INSERT INTO "batches" VALUES(16,2,29,32,'[["2026-11-30T01:09:28.306631+00:00","node.event",{"event_type":"plan","data":{"title":"A title","hash":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","nodes":2}},"plans",1],["2026-11-30T01:09:28.306631+00:00","node.event",{"event_type":"run_graph","data":{"key":"plan","graph":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","inputs":"7e1f033bcf8fb8b7eaa60bca100babc1c8039f152e4720ce5778ba9bb51221c8"}},"plans",1],["2026-11-30T01:09:28.306631+00:00","wave.started",{"wave":1,"nodes":["first"]},"plans[plan]"],["2026-11-30T01:09:28.306631+00:00","node.started",{"wave":1,"name":"first"},"plans[plan]/first",1]]');
INSERT INTO "batches" VALUES(17,2,33,40,'[["2026-11-30T01:09:28.308231+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it failed"}},"duration_s":0.001715},"inside[graph]/first",1],["2026-11-30T01:09:28.308231+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}}},"duration_s":0.001715},"again[0]/second",1],["2026-11-30T01:09:28.308231+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"aa"}},"duration_s":0.001715},"each[0]/second",1],["2026-11-30T01:09:28.308231+00:00","wave.completed",{"wave":1},"inside[graph]"],["2026-11-30T01:09:28.308231+00:00","wave.completed",{"wave":2},"again[0]"],["2026-11-30T01:09:28.308231+00:00","wave.completed",{"wave":2},"each[0]"],["2026-11-30T01:09:28.308231+00:00","wave.started",{"wave":2,"nodes":["second"]},"inside[graph]"],["2026-11-30T01:09:28.308231+00:00","node.started",{"wave":2,"name":"second"},"inside[graph]/second",1]]');
INSERT INTO "batches" VALUES(18,2,41,44,'[["2026-11-30T01:09:28.309550+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it failed"}},"duration_s":0.001389},"plans[plan]/first",1],["2026-11-30T01:09:28.309550+00:00","wave.completed",{"wave":1},"plans[plan]"],["2026-11-30T01:09:28.309550+00:00","wave.started",{"wave":2,"nodes":["second"]},"plans[plan]"],["2026-11-30T01:09:28.309550+00:00","node.started",{"wave":2,"name":"second"},"plans[plan]/second",1]]');
INSERT INTO "batches" VALUES(19,2,45,50,'[["2026-11-30T01:09:28.311170+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it failedit failed"}},"duration_s":0.001748},"inside[graph]/second",1],["2026-11-30T01:09:28.311170+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}},"iterations":{"type":"integer","value":1}},"duration_s":0.018051,"depends_on":"graph-5434e1b092efd2d3b25395df28abc0d98316302503f552bdb15b4eb7f1ab8a6f"},"again",1],["2026-11-30T01:09:28.311170+00:00","node.event",{"event_type":"run_graph","data":{"key":"1","graph":"1ee814ae9e189e27345dbe662a7608a427390d9f8ce1ac2e7fbbbe034e19d80c","inputs":"a438bbf2f312246f9abe8df83186c75cf954ff21d1b16f30cd760e2d8a38618c"}},"each",1],["2026-11-30T01:09:28.311170+00:00","wave.completed",{"wave":2},"inside[graph]"],["2026-11-30T01:09:28.311170+00:00","wave.started",{"wave":1,"nodes":["first"]},"each[1]"],["2026-11-30T01:09:28.311170+00:00","node.started",{"wave":1,"name":"first"},"each[1]/first",1]]');
INSERT INTO "batches" VALUES(20,2,51,52,'[["2026-11-30T01:09:28.312538+00:00","node.failed",{"error":{"code":"node-failed","message":"out of order"},"handled":false,"duration_s":0.001478},"plans[plan]/second",1],["2026-11-30T01:09:28.312538+00:00","wave.completed",{"wave":2},"plans[plan]"]]');
INSERT INTO "batches" VALUES(21,2,53,57,'[["2026-11-30T01:09:28.313705+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"b"}},"duration_s":0.001263},"each[1]/first",1],["2026-11-30T01:09:28.313705+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it failedit failed"}},"duration_s":0.014582,"depends_on":"graph-a37b0b74571be704ba35c55d6e784c7a065cd874c01299028574874863c06d96"},"inside",1],["2026-11-30T01:09:28.313705+00:00","wave.completed",{"wave":1},"each[1]"],["2026-11-30T01:09:28.313705+00:00","wave.started",{"wave":2,"nodes":["second"]},"each[1]"],["2026-11-30T01:09:28.313705+00:00","node.started",{"wave":2,"name":"second"},"each[1]/second",1]]');
INSERT INTO "batches" VALUES(22,2,58,60,'[["2026-11-30T01:09:28.314799+00:00","node.failed",{"error":{"code":"nested-run-failed","message":"node ''plans[plan]/second'' failed: out of order","cause":{"node":"plans[plan]/second","code":"node-failed","message":"out of order"}},"handled":false,"duration_s":0.021681},"plans",1],["2026-11-30T01:09:28.314799+00:00","node.blocked",{"cause":{"node":"plans","error":{"code":"nested-run-failed","message":"node ''plans[plan]/second'' failed: out of order","cause":{"node":"plans[plan]/second","code":"node-failed","message":"out of order"}}}},"last"],["2026-11-30T01:09:28.314799+00:00","wave.completed",{"wave":2}]]');
INSERT INTO "batches" VALUES(23,2,61,62,'[["2026-11-30T01:09:28.316037+00:00","node.failed",{"error":{"code":"node-failed","message":"out of order"},"handled":false,"duration_s":0.001314},"each[1]/second",1],["2026-11-30T01:09:28.316037+00:00","wave.completed",{"wave":2},"each[1]"]]');
INSERT INTO "batches" VALUES(24,2,63,65,'[["2026-11-30T01:09:28.317257+00:00","node.failed",{"error":{"code":"nested-run-failed","message":"node ''each[1]/second'' failed: out of order","cause":{"node":"each[1]/second","code":"node-failed","message":"out of order"}},"handled":false,"duration_s":0.024141},"each",1],["2026-11-30T01:09:28.317257+00:00","wave.completed",{"wave":1}],["2026-11-30T01:09:28.317257+00:00","execution.failed",{"error":{"code":"nested-run-failed","message":"node ''plans[plan]/second'' failed: out of order","cause":{"node":"plans[plan]/second","code":"node-failed","message":"out of order"},"node":"plans"},"failures":["plans","each"]}]]');
INSERT INTO "batches" VALUES(25,3,1,1,'[["2026-11-30T01:09:28.351094+00:00","execution.created",{"goal":"it completed","title":"A title","plan_id":"01a229ff-ee97-7000-b700-6884cdd4ddb9","revision":1,"plan_hash":"5d4f362003e9805eacd47dbb77fc862d77ca01447193b2ebc5a383a9465f66b6","graph":{"nodes":[{"id":"each","type":"loop","name":"each","data":{"items":["a","b"],"parallel":1,"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ item }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"again","type":"while","name":"again","data":{"condition":"value.goes","initial":{"goes":true,"next":{"goes":false}},"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"say","type":"step","name":"say","data":{"value":"d"}},{"id":"inside","type":"inner","name":"inside","data":{"graph":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"plans","type":"planner","name":"plans","data":{"goal":"it completed"}},{"id":"last","type":"step","name":"last","data":{"value":"{{ nodes.each.output }}"}}],"edges":[{"id":"e1","source":"say","sourceHandle":"output","target":"inside","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"each","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e3","source":"again","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e4","source":"plans","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]},"options":{"max_parallel":64,"node_timeout_s":600.0,"run_timeout_s":3600.0,"max_events":50000,"max_result_bytes":33554432,"max_event_bytes":8388608,"max_state_bytes":33554432,"max_steps":10000,"max_depth":5,"budget":{"usd":5.0,"tokens":200000}},"waves":2,"created_by":{"kind":"local"}}]]');
INSERT INTO "batches" VALUES(26,3,2,7,'[["2026-11-30T01:09:28.353693+00:00","execution.started",{"waves":2}],["2026-11-30T01:09:28.353693+00:00","wave.started",{"wave":1,"nodes":["each","again","say","plans"]}],["2026-11-30T01:09:28.353693+00:00","node.started",{"wave":1},"each",1],["2026-11-30T01:09:28.353693+00:00","node.started",{"wave":1},"again",1],["2026-11-30T01:09:28.353693+00:00","node.started",{"wave":1},"say",1],["2026-11-30T01:09:28.353693+00:00","node.started",{"wave":1},"plans",1]]');
INSERT INTO "batches" VALUES(27,3,8,16,'[["2026-11-30T01:09:28.362178+00:00","node.event",{"event_type":"run_graph","data":{"key":"0","graph":"821d06fddf0233713de64b103a01f5f8d5458c0c06649c2097081fbc7defae50","inputs":"8ab8e9a6be426a016744950880f14147d0082a6c38a92f2763bcba21e0842224","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"again",1],["2026-11-30T01:09:28.362178+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"d"}},"duration_s":0.006914},"say",1],["2026-11-30T01:09:28.362178+00:00","node.event",{"event_type":"run_graph","data":{"key":"0","graph":"1ee814ae9e189e27345dbe662a7608a427390d9f8ce1ac2e7fbbbe034e19d80c","inputs":"69cd17d552cb2930b7079eed7dfb23dfa6089d6a64ca8c56c5b1ed3876f38055","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ item }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"each",1],["2026-11-30T01:09:28.362178+00:00","wave.started",{"wave":1,"nodes":["first"]},"again[0]"],["2026-11-30T01:09:28.362178+00:00","node.started",{"wave":1,"name":"first"},"again[0]/first",1],["2026-11-30T01:09:28.362178+00:00","wave.started",{"wave":1,"nodes":["first"]},"each[0]"],["2026-11-30T01:09:28.362178+00:00","node.started",{"wave":1,"name":"first"},"each[0]/first",1],["2026-11-30T01:09:28.362178+00:00","wave.started",{"wave":2,"nodes":["inside","last"]}],["2026-11-30T01:09:28.362178+00:00","node.started",{"wave":2},"inside",1]]');
INSERT INTO "batches" VALUES(28,3,17,17,'[["2026-11-30T01:09:28.364536+00:00","node.event",{"event_type":"once","data":{"key":"plan","value":{"goal":"it completed","title":"A title","nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]},"depends_on":"c46d841a91004d4f443b0081af118437e45bdebfd860a4df67e0606cda258788"}},"plans",1]]');
INSERT INTO "batches" VALUES(29,3,18,28,'[["2026-11-30T01:09:28.366512+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}}},"duration_s":0.002084},"again[0]/first",1],["2026-11-30T01:09:28.366512+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"a"}},"duration_s":0.002084},"each[0]/first",1],["2026-11-30T01:09:28.366512+00:00","node.event",{"event_type":"run_graph","data":{"key":"graph","graph":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","inputs":"d827049039f82a8b65a9b0f52e637cf3bc5d1e0dec7d6198edf901a5e3dcae7d","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"inside",1],["2026-11-30T01:09:28.366512+00:00","wave.completed",{"wave":1},"again[0]"],["2026-11-30T01:09:28.366512+00:00","wave.completed",{"wave":1},"each[0]"],["2026-11-30T01:09:28.366512+00:00","wave.started",{"wave":1,"nodes":["first"]},"inside[graph]"],["2026-11-30T01:09:28.366512+00:00","node.started",{"wave":1,"name":"first"},"inside[graph]/first",1],["2026-11-30T01:09:28.366512+00:00","wave.started",{"wave":2,"nodes":["second"]},"again[0]"],["2026-11-30T01:09:28.366512+00:00","node.started",{"wave":2,"name":"second"},"again[0]/second",1],["2026-11-30T01:09:28.366512+00:00","wave.started",{"wave":2,"nodes":["second"]},"each[0]"],["2026-11-30T01:09:28.366512+00:00","node.started",{"wave":2,"name":"second"},"each[0]/second",1]]');
INSERT INTO "batches" VALUES(30,3,29,32,'[["2026-11-30T01:09:28.369004+00:00","node.event",{"event_type":"plan","data":{"title":"A title","hash":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","nodes":2}},"plans",1],["2026-11-30T01:09:28.369004+00:00","node.event",{"event_type":"run_graph","data":{"key":"plan","graph":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","inputs":"70269f0702bf724fc5f7c94b4f5d1045e7cf73b453e79405a1ddf7a8dd4c6663"}},"plans",1],["2026-11-30T01:09:28.369004+00:00","wave.started",{"wave":1,"nodes":["first"]},"plans[plan]"],["2026-11-30T01:09:28.369004+00:00","node.started",{"wave":1,"name":"first"},"plans[plan]/first",1]]');
INSERT INTO "batches" VALUES(31,3,33,40,'[["2026-11-30T01:09:28.370257+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it completed"}},"duration_s":0.001351},"inside[graph]/first",1],["2026-11-30T01:09:28.370257+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}}},"duration_s":0.001351},"again[0]/second",1],["2026-11-30T01:09:28.370257+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"aa"}},"duration_s":0.001351},"each[0]/second",1],["2026-11-30T01:09:28.370257+00:00","wave.completed",{"wave":1},"inside[graph]"],["2026-11-30T01:09:28.370257+00:00","wave.completed",{"wave":2},"again[0]"],["2026-11-30T01:09:28.370257+00:00","wave.completed",{"wave":2},"each[0]"],["2026-11-30T01:09:28.370257+00:00","wave.started",{"wave":2,"nodes":["second"]},"inside[graph]"],["2026-11-30T01:09:28.370257+00:00","node.started",{"wave":2,"name":"second"},"inside[graph]/second",1]]');
INSERT INTO "batches" VALUES(32,3,41,44,'[["2026-11-30T01:09:28.371579+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it completed"}},"duration_s":0.001379},"plans[plan]/first",1],["2026-11-30T01:09:28.371579+00:00","wave.completed",{"wave":1},"plans[plan]"],["2026-11-30T01:09:28.371579+00:00","wave.started",{"wave":2,"nodes":["second"]},"plans[plan]"],["2026-11-30T01:09:28.371579+00:00","node.started",{"wave":2,"name":"second"},"plans[plan]/second",1]]');
INSERT INTO "batches" VALUES(33,3,45,50,'[["2026-11-30T01:09:28.372988+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it completedit completed"}},"duration_s":0.001523},"inside[graph]/second",1],["2026-11-30T01:09:28.372988+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}},"iterations":{"type":"integer","value":1}},"duration_s":0.017726,"depends_on":"graph-9ba69a33272e7da3f5d894d2c2ac18ebd638d9f7f27ccbef41488697228ce8c7"},"again",1],["2026-11-30T01:09:28.372988+00:00","node.event",{"event_type":"run_graph","data":{"key":"1","graph":"1ee814ae9e189e27345dbe662a7608a427390d9f8ce1ac2e7fbbbe034e19d80c","inputs":"a438bbf2f312246f9abe8df83186c75cf954ff21d1b16f30cd760e2d8a38618c"}},"each",1],["2026-11-30T01:09:28.372988+00:00","wave.completed",{"wave":2},"inside[graph]"],["2026-11-30T01:09:28.372988+00:00","wave.started",{"wave":1,"nodes":["first"]},"each[1]"],["2026-11-30T01:09:28.372988+00:00","node.started",{"wave":1,"name":"first"},"each[1]/first",1]]');
INSERT INTO "batches" VALUES(34,3,51,52,'[["2026-11-30T01:09:28.374224+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it completedit completed"}},"duration_s":0.001295},"plans[plan]/second",1],["2026-11-30T01:09:28.374224+00:00","wave.completed",{"wave":2},"plans[plan]"]]');
INSERT INTO "batches" VALUES(35,3,53,57,'[["2026-11-30T01:09:28.375195+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"b"}},"duration_s":0.001083},"each[1]/first",1],["2026-11-30T01:09:28.375195+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it completedit completed"}},"duration_s":0.010772,"depends_on":"graph-5419720d14dbbdbf47dfd04bb01167b5b7d1e0471d7903380b7d44c6dc8310d8"},"inside",1],["2026-11-30T01:09:28.375195+00:00","wave.completed",{"wave":1},"each[1]"],["2026-11-30T01:09:28.375195+00:00","wave.started",{"wave":2,"nodes":["second"]},"each[1]"],["2026-11-30T01:09:28.375195+00:00","node.started",{"wave":2,"name":"second"},"each[1]/second",1]]');
INSERT INTO "batches" VALUES(36,3,58,58,'[["2026-11-30T01:09:28.376302+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it completedit completed"},"plan":{"type":"json","value":{"goal":"it completed","title":"A title","nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"duration_s":0.021042,"depends_on":"c46d841a91004d4f443b0081af118437e45bdebfd860a4df67e0606cda258788"},"plans",1]]');
INSERT INTO "batches" VALUES(37,3,59,60,'[["2026-11-30T01:09:28.377196+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"bb"}},"duration_s":0.000956},"each[1]/second",1],["2026-11-30T01:09:28.377196+00:00","wave.completed",{"wave":2},"each[1]"]]');
INSERT INTO "batches" VALUES(38,3,61,63,'[["2026-11-30T01:09:28.378182+00:00","node.completed",{"outputs":{"output":{"type":"json","value":["aa","bb"]}},"duration_s":0.022923,"depends_on":"graph-47bfa0b2c69d9ed454888c529e547a44ffe66a9be7d42fad5aa79a25a3c5a82d"},"each",1],["2026-11-30T01:09:28.378182+00:00","wave.completed",{"wave":1}],["2026-11-30T01:09:28.378182+00:00","node.started",{"wave":2},"last",1]]');
INSERT INTO "batches" VALUES(39,3,64,66,'[["2026-11-30T01:09:28.379201+00:00","node.completed",{"outputs":{"output":{"type":"any","value":["aa","bb"]}},"duration_s":0.000248},"last",1],["2026-11-30T01:09:28.379201+00:00","wave.completed",{"wave":2}],["2026-11-30T01:09:28.379201+00:00","execution.completed",{}]]');
INSERT INTO "batches" VALUES(40,4,1,1,'[["2026-11-30T01:09:28.405016+00:00","execution.created",{"goal":"it was cut off","title":"A title","plan_id":"01a229ff-eecd-7000-b05d-f7a1b933c329","revision":1,"plan_hash":"bd4c387b3e95e0ac49023525711f05e7b7fa2b05fd42c23ddca09f7a198ab1d6","graph":{"nodes":[{"id":"each","type":"loop","name":"each","data":{"items":["a","b"],"parallel":1,"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ item }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"again","type":"while","name":"again","data":{"condition":"value.goes","initial":{"goes":true,"next":{"goes":false}},"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"say","type":"step","name":"say","data":{"value":"d"}},{"id":"inside","type":"inner","name":"inside","data":{"graph":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"plans","type":"planner","name":"plans","data":{"goal":"it was cut off"}},{"id":"last","type":"step","name":"last","data":{"value":"{{ nodes.each.output }}"}}],"edges":[{"id":"e1","source":"say","sourceHandle":"output","target":"inside","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"each","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e3","source":"again","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e4","source":"plans","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}]},"options":{"max_parallel":64,"node_timeout_s":600.0,"run_timeout_s":3600.0,"max_events":50000,"max_result_bytes":33554432,"max_event_bytes":8388608,"max_state_bytes":33554432,"max_steps":10000,"max_depth":5,"budget":{"usd":5.0,"tokens":200000}},"waves":2,"created_by":{"kind":"local"}}]]');
INSERT INTO "batches" VALUES(41,4,2,7,'[["2026-11-30T01:09:28.407718+00:00","execution.started",{"waves":2}],["2026-11-30T01:09:28.407718+00:00","wave.started",{"wave":1,"nodes":["each","again","say","plans"]}],["2026-11-30T01:09:28.407718+00:00","node.started",{"wave":1},"each",1],["2026-11-30T01:09:28.407718+00:00","node.started",{"wave":1},"again",1],["2026-11-30T01:09:28.407718+00:00","node.started",{"wave":1},"say",1],["2026-11-30T01:09:28.407718+00:00","node.started",{"wave":1},"plans",1]]');
INSERT INTO "batches" VALUES(42,4,8,16,'[["2026-11-30T01:09:28.412403+00:00","node.event",{"event_type":"run_graph","data":{"key":"0","graph":"821d06fddf0233713de64b103a01f5f8d5458c0c06649c2097081fbc7defae50","inputs":"8ab8e9a6be426a016744950880f14147d0082a6c38a92f2763bcba21e0842224","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"again",1],["2026-11-30T01:09:28.412403+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"d"}},"duration_s":0.003414},"say",1],["2026-11-30T01:09:28.412403+00:00","node.event",{"event_type":"run_graph","data":{"key":"0","graph":"1ee814ae9e189e27345dbe662a7608a427390d9f8ce1ac2e7fbbbe034e19d80c","inputs":"69cd17d552cb2930b7079eed7dfb23dfa6089d6a64ca8c56c5b1ed3876f38055","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ item }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"each",1],["2026-11-30T01:09:28.412403+00:00","wave.started",{"wave":1,"nodes":["first"]},"again[0]"],["2026-11-30T01:09:28.412403+00:00","node.started",{"wave":1,"name":"first"},"again[0]/first",1],["2026-11-30T01:09:28.412403+00:00","wave.started",{"wave":1,"nodes":["first"]},"each[0]"],["2026-11-30T01:09:28.412403+00:00","node.started",{"wave":1,"name":"first"},"each[0]/first",1],["2026-11-30T01:09:28.412403+00:00","wave.started",{"wave":2,"nodes":["inside","last"]}],["2026-11-30T01:09:28.412403+00:00","node.started",{"wave":2},"inside",1]]');
INSERT INTO "batches" VALUES(43,4,17,17,'[["2026-11-30T01:09:28.414569+00:00","node.event",{"event_type":"once","data":{"key":"plan","value":{"goal":"it was cut off","title":"A title","nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]},"depends_on":"54d077b9e4937bc89b40e8b0122c866762926f8ed78e26b1f3a7ac0b6d429963"}},"plans",1]]');
INSERT INTO "batches" VALUES(44,4,18,28,'[["2026-11-30T01:09:28.416603+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}}},"duration_s":0.002141},"again[0]/first",1],["2026-11-30T01:09:28.416603+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"a"}},"duration_s":0.002141},"each[0]/first",1],["2026-11-30T01:09:28.416603+00:00","node.event",{"event_type":"run_graph","data":{"key":"graph","graph":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","inputs":"d827049039f82a8b65a9b0f52e637cf3bc5d1e0dec7d6198edf901a5e3dcae7d","document":{"nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"inside",1],["2026-11-30T01:09:28.416603+00:00","wave.completed",{"wave":1},"again[0]"],["2026-11-30T01:09:28.416603+00:00","wave.completed",{"wave":1},"each[0]"],["2026-11-30T01:09:28.416603+00:00","wave.started",{"wave":1,"nodes":["first"]},"inside[graph]"],["2026-11-30T01:09:28.416603+00:00","node.started",{"wave":1,"name":"first"},"inside[graph]/first",1],["2026-11-30T01:09:28.416603+00:00","wave.started",{"wave":2,"nodes":["second"]},"again[0]"],["2026-11-30T01:09:28.416603+00:00","node.started",{"wave":2,"name":"second"},"again[0]/second",1],["2026-11-30T01:09:28.416603+00:00","wave.started",{"wave":2,"nodes":["second"]},"each[0]"],["2026-11-30T01:09:28.416603+00:00","node.started",{"wave":2,"name":"second"},"each[0]/second",1]]');
INSERT INTO "batches" VALUES(45,4,29,32,'[["2026-11-30T01:09:28.419084+00:00","node.event",{"event_type":"plan","data":{"title":"A title","hash":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","nodes":2}},"plans",1],["2026-11-30T01:09:28.419084+00:00","node.event",{"event_type":"run_graph","data":{"key":"plan","graph":"c2cf03ffb241b1c2eb183a847cc126905c7cdea00005f64a40836668f2366349","inputs":"b502a0af5aad73bc1c1fc007ad206006326866f7f9e55afa47ea5276c4aedcba"}},"plans",1],["2026-11-30T01:09:28.419084+00:00","wave.started",{"wave":1,"nodes":["first"]},"plans[plan]"],["2026-11-30T01:09:28.419084+00:00","node.started",{"wave":1,"name":"first"},"plans[plan]/first",1]]');
INSERT INTO "batches" VALUES(46,4,33,40,'[["2026-11-30T01:09:28.420474+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it was cut off"}},"duration_s":0.001485},"inside[graph]/first",1],["2026-11-30T01:09:28.420474+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}}},"duration_s":0.001485},"again[0]/second",1],["2026-11-30T01:09:28.420474+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"aa"}},"duration_s":0.001485},"each[0]/second",1],["2026-11-30T01:09:28.420474+00:00","wave.completed",{"wave":1},"inside[graph]"],["2026-11-30T01:09:28.420474+00:00","wave.completed",{"wave":2},"again[0]"],["2026-11-30T01:09:28.420474+00:00","wave.completed",{"wave":2},"each[0]"],["2026-11-30T01:09:28.420474+00:00","wave.started",{"wave":2,"nodes":["second"]},"inside[graph]"],["2026-11-30T01:09:28.420474+00:00","node.started",{"wave":2,"name":"second"},"inside[graph]/second",1]]');
INSERT INTO "batches" VALUES(47,4,41,44,'[["2026-11-30T01:09:28.421703+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it was cut off"}},"duration_s":0.001281},"plans[plan]/first",1],["2026-11-30T01:09:28.421703+00:00","wave.completed",{"wave":1},"plans[plan]"],["2026-11-30T01:09:28.421703+00:00","wave.started",{"wave":2,"nodes":["second"]},"plans[plan]"],["2026-11-30T01:09:28.421703+00:00","node.started",{"wave":2,"name":"second"},"plans[plan]/second",1]]');
INSERT INTO "batches" VALUES(48,4,45,50,'[["2026-11-30T01:09:28.423084+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it was cut offit was cut off"}},"duration_s":0.001481},"inside[graph]/second",1],["2026-11-30T01:09:28.423084+00:00","node.completed",{"outputs":{"output":{"type":"any","value":{"goes":false}},"iterations":{"type":"integer","value":1}},"duration_s":0.014098,"depends_on":"graph-9fc3223bc059e23c36226b9d430ece7b371d90d02355db7607f6ddca8a589e69"},"again",1],["2026-11-30T01:09:28.423084+00:00","node.event",{"event_type":"run_graph","data":{"key":"1","graph":"1ee814ae9e189e27345dbe662a7608a427390d9f8ce1ac2e7fbbbe034e19d80c","inputs":"a438bbf2f312246f9abe8df83186c75cf954ff21d1b16f30cd760e2d8a38618c"}},"each",1],["2026-11-30T01:09:28.423084+00:00","wave.completed",{"wave":2},"inside[graph]"],["2026-11-30T01:09:28.423084+00:00","wave.started",{"wave":1,"nodes":["first"]},"each[1]"],["2026-11-30T01:09:28.423084+00:00","node.started",{"wave":1,"name":"first"},"each[1]/first",1]]');
INSERT INTO "batches" VALUES(49,4,51,52,'[["2026-11-30T01:09:28.424338+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it was cut offit was cut off"}},"duration_s":0.001312},"plans[plan]/second",1],["2026-11-30T01:09:28.424338+00:00","wave.completed",{"wave":2},"plans[plan]"]]');
INSERT INTO "batches" VALUES(50,4,53,57,'[["2026-11-30T01:09:28.425319+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"b"}},"duration_s":0.001062},"each[1]/first",1],["2026-11-30T01:09:28.425319+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it was cut offit was cut off"}},"duration_s":0.01086,"depends_on":"graph-3855b9b1ac57af3a504bc85052d0bed6fd8e8c2afedea5601e2d7cbf0c96d61b"},"inside",1],["2026-11-30T01:09:28.425319+00:00","wave.completed",{"wave":1},"each[1]"],["2026-11-30T01:09:28.425319+00:00","wave.started",{"wave":2,"nodes":["second"]},"each[1]"],["2026-11-30T01:09:28.425319+00:00","node.started",{"wave":2,"name":"second"},"each[1]/second",1]]');
INSERT INTO "batches" VALUES(51,4,58,58,'[["2026-11-30T01:09:28.426390+00:00","node.completed",{"outputs":{"output":{"type":"any","value":"it was cut offit was cut off"},"plan":{"type":"json","value":{"goal":"it was cut off","title":"A title","nodes":[{"id":"first","type":"step","name":"first","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","name":"second","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"id":"e1","source":"first","sourceHandle":"output","target":"second","targetHandle":"input","data":{"channel":"flow"}}]}}},"duration_s":0.017406,"depends_on":"54d077b9e4937bc89b40e8b0122c866762926f8ed78e26b1f3a7ac0b6d429963"},"plans",1]]');
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
	PRIMARY KEY ("key"), 
	UNIQUE (execution_id)
);
INSERT INTO "executions" VALUES(1,'01a229ff-edf1-7000-9121-faf3bcf40885','01a229ff-eda9-7000-9a56-d68cdd5626fe','paused','2026-11-30T01:09:28.178041+00:00','2026-11-30T01:09:28.181839+00:00',NULL,57,1,1,1,NULL,'{"kind": "local"}',NULL,NULL,0,NULL,NULL);
INSERT INTO "executions" VALUES(2,'01a229ff-ee5f-7000-87c3-6f5b3f1ce5c8','01a229ff-ee56-7000-a3e8-946cd3baa445','failed','2026-11-30T01:09:28.287968+00:00','2026-11-30T01:09:28.291571+00:00','2026-11-30T01:09:28.317257+00:00',65,1,1,1,NULL,'{"kind": "local"}',NULL,NULL,0,NULL,0.025686);
INSERT INTO "executions" VALUES(3,'01a229ff-ee9e-7000-8a54-503609deeede','01a229ff-ee97-7000-b700-6884cdd4ddb9','completed','2026-11-30T01:09:28.351094+00:00','2026-11-30T01:09:28.353693+00:00','2026-11-30T01:09:28.379201+00:00',66,1,1,1,NULL,'{"kind": "local"}',NULL,NULL,0,NULL,0.025508);
INSERT INTO "executions" VALUES(4,'01a229ff-eed4-7000-8ceb-e46859a0d6b6','01a229ff-eecd-7000-b05d-f7a1b933c329','executing','2026-11-30T01:09:28.405016+00:00','2026-11-30T01:09:28.407718+00:00',NULL,0,1,1,1,NULL,'{"kind": "local"}',NULL,NULL,NULL,NULL,NULL);
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
INSERT INTO "plans" VALUES('01a229ff-eda9-7000-9a56-d68cdd5626fe','2026-01-01T00:00:00+00:00','A title','it asks','d225ecb27234f81b7cf93fc786407e60c20c3df8055e08f62fbf521f4783f32e','
a title

it asks','{"plan_id":"01a229ff-eda9-7000-9a56-d68cdd5626fe","user_prompt":"it asks","title":"A title","status":"draft","revision":1,"hash":"d225ecb27234f81b7cf93fc786407e60c20c3df8055e08f62fbf521f4783f32e","created_at":"2026-01-01T00:00:00+00:00","name":null,"description":"","published":[],"live_revision":1,"provider":null,"model":null,"nodes":[{"id":"each","type":"loop","name":"each","data":{"items":["a","b"],"parallel":2,"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ item }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}},{"id":"ask","type":"approval","data":{"prompt":"Good?"}}],"edges":[{"source":"first","target":"ask","data":{"channel":"flow"}},{"source":"ask","target":"second","sourceHandle":"approve","data":{"channel":"flow"}}]}}},{"id":"again","type":"while","name":"again","data":{"condition":"value.goes","initial":{"goes":true,"next":{"goes":false}},"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}"}},{"id":"ask","type":"approval","data":{"prompt":"Good?"}}],"edges":[{"source":"first","target":"ask","data":{"channel":"flow"}},{"source":"ask","target":"second","sourceHandle":"approve","data":{"channel":"flow"}}]}}},{"id":"say","type":"step","name":"say","data":{"value":"d"}},{"id":"inside","type":"inner","name":"inside","data":{"graph":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}},{"id":"ask","type":"approval","data":{"prompt":"Good?"}}],"edges":[{"source":"first","target":"ask","data":{"channel":"flow"}},{"source":"ask","target":"second","sourceHandle":"approve","data":{"channel":"flow"}}]}}},{"id":"plans","type":"planner","name":"plans","data":{"goal":"it asks"}},{"id":"last","type":"step","name":"last","data":{"value":"{{ nodes.each.output }}"}}],"edges":[{"id":"e1","source":"say","sourceHandle":"output","target":"inside","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"each","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e3","source":"again","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e4","source":"plans","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}],"diagnostics":[],"fixes":[],"attempts":[],"forecast":{}}',0,NULL,'',NULL,'{"kind": "local"}',NULL,NULL,'','',1,NULL,'{}');
INSERT INTO "plans" VALUES('01a229ff-ee56-7000-a3e8-946cd3baa445','2026-01-01T00:00:00+00:00','A title','it failed','4d729c4a453106d6612fa12231a5a001281d477ad15b2e808a9588b73d71af40','
a title

it failed','{"plan_id":"01a229ff-ee56-7000-a3e8-946cd3baa445","user_prompt":"it failed","title":"A title","status":"draft","revision":1,"hash":"4d729c4a453106d6612fa12231a5a001281d477ad15b2e808a9588b73d71af40","created_at":"2026-01-01T00:00:00+00:00","name":null,"description":"","published":[],"live_revision":1,"provider":null,"model":null,"nodes":[{"id":"each","type":"loop","name":"each","data":{"items":["a","b"],"parallel":1,"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ item }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"again","type":"while","name":"again","data":{"condition":"value.goes","initial":{"goes":true,"next":{"goes":false}},"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"say","type":"step","name":"say","data":{"value":"d"}},{"id":"inside","type":"inner","name":"inside","data":{"graph":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"plans","type":"planner","name":"plans","data":{"goal":"it failed"}},{"id":"last","type":"step","name":"last","data":{"value":"{{ nodes.each.output }}"}}],"edges":[{"id":"e1","source":"say","sourceHandle":"output","target":"inside","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"each","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e3","source":"again","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e4","source":"plans","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}],"diagnostics":[],"fixes":[],"attempts":[],"forecast":{}}',0,NULL,'',NULL,'{"kind": "local"}',NULL,NULL,'','',1,NULL,'{}');
INSERT INTO "plans" VALUES('01a229ff-ee97-7000-b700-6884cdd4ddb9','2026-01-01T00:00:00+00:00','A title','it completed','5d4f362003e9805eacd47dbb77fc862d77ca01447193b2ebc5a383a9465f66b6','
a title

it completed','{"plan_id":"01a229ff-ee97-7000-b700-6884cdd4ddb9","user_prompt":"it completed","title":"A title","status":"draft","revision":1,"hash":"5d4f362003e9805eacd47dbb77fc862d77ca01447193b2ebc5a383a9465f66b6","created_at":"2026-01-01T00:00:00+00:00","name":null,"description":"","published":[],"live_revision":1,"provider":null,"model":null,"nodes":[{"id":"each","type":"loop","name":"each","data":{"items":["a","b"],"parallel":1,"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ item }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"again","type":"while","name":"again","data":{"condition":"value.goes","initial":{"goes":true,"next":{"goes":false}},"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"say","type":"step","name":"say","data":{"value":"d"}},{"id":"inside","type":"inner","name":"inside","data":{"graph":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"plans","type":"planner","name":"plans","data":{"goal":"it completed"}},{"id":"last","type":"step","name":"last","data":{"value":"{{ nodes.each.output }}"}}],"edges":[{"id":"e1","source":"say","sourceHandle":"output","target":"inside","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"each","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e3","source":"again","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e4","source":"plans","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}],"diagnostics":[],"fixes":[],"attempts":[],"forecast":{}}',0,NULL,'',NULL,'{"kind": "local"}',NULL,NULL,'','',1,NULL,'{}');
INSERT INTO "plans" VALUES('01a229ff-eecd-7000-b05d-f7a1b933c329','2026-01-01T00:00:00+00:00','A title','it was cut off','bd4c387b3e95e0ac49023525711f05e7b7fa2b05fd42c23ddca09f7a198ab1d6','
a title

it was cut off','{"plan_id":"01a229ff-eecd-7000-b05d-f7a1b933c329","user_prompt":"it was cut off","title":"A title","status":"draft","revision":1,"hash":"bd4c387b3e95e0ac49023525711f05e7b7fa2b05fd42c23ddca09f7a198ab1d6","created_at":"2026-01-01T00:00:00+00:00","name":null,"description":"","published":[],"live_revision":1,"provider":null,"model":null,"nodes":[{"id":"each","type":"loop","name":"each","data":{"items":["a","b"],"parallel":1,"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ item }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"again","type":"while","name":"again","data":{"condition":"value.goes","initial":{"goes":true,"next":{"goes":false}},"body":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ value.next }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"say","type":"step","name":"say","data":{"value":"d"}},{"id":"inside","type":"inner","name":"inside","data":{"graph":{"nodes":[{"id":"first","type":"step","data":{"value":"{{ goal }}"}},{"id":"second","type":"step","data":{"value":"{{ input }}{{ input }}"}}],"edges":[{"source":"first","target":"second","data":{"channel":"flow"}}]}}},{"id":"plans","type":"planner","name":"plans","data":{"goal":"it was cut off"}},{"id":"last","type":"step","name":"last","data":{"value":"{{ nodes.each.output }}"}}],"edges":[{"id":"e1","source":"say","sourceHandle":"output","target":"inside","targetHandle":"input","data":{"channel":"flow"}},{"id":"e2","source":"each","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e3","source":"again","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}},{"id":"e4","source":"plans","sourceHandle":"output","target":"last","targetHandle":"input","data":{"channel":"flow"}}],"diagnostics":[],"fixes":[],"attempts":[],"forecast":{}}',0,NULL,'',NULL,'{"kind": "local"}',NULL,NULL,'','',1,NULL,'{}');
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
INSERT INTO "schema_hash" VALUES('a12e560ee28370dc5269d234f560b1037c0d378c5fcfc70ec85bf660053148be');
CREATE TABLE search_signatures (
	execution INTEGER NOT NULL, 
	signature BLOB NOT NULL, 
	PRIMARY KEY (execution), 
	FOREIGN KEY(execution) REFERENCES executions ("key")
);
INSERT INTO "search_signatures" VALUES(1,X'0008200518100000800000000040200000000000000000000000440000000000804000000200400800400000000000001200000000800001000000000000200000108040000004000400000080000000000000000048000000000000010000400000000002000000000000000080004128020000000000010000040000000A00180000008000400040000000000000000800000000001000002000040000000000000400000010001020200000040400010C06000000000000000008000000000001200000000000210000000000000442040C000000100000000000800000000000A8040000008200000100000000002000080400200000000000000000000020004080000080000200001000000000000000800000000000000200040000001008000000000001000030008000408004280040020000000000100000000000000000408000004100000000000A00000400000800000000001000000500004000800000000000010002000200000000000000010044088810000004010000000004040000100000000100010000102800420000000010000000000000000600004006800000000000000000000000000000000A0000040000000008008000001100000000000000004000002000001840800008000000042000000000004000000805000003001022000000000008000000090004008000000000000000000A000800000000000001000000000000000000000000000020200000000008000000800000000040800060800000000200000000001400000000001000200000000004000000400000000000000000000000000000000004001222000200010000000000800008040010004200000800040000000010000000000000008100040100000000040800000020010000020000000020000108000000000000000000802000000000000400840000000000000088000000000001020001000084840000140000000000000000000448008002000000000400000000000000000008200040400800480014000080002010000000010000000000000801000000000002000004000000000210000000000000000200000000004000002000008080000008008000200000000000008040000000000000000200000000000000000000000004008000000008000040202420004000000000000001180002000020000088100000001000410001000000000000400610000000000000000000201000000000000008000000000200002A04200000000000040000000000000018000C008004000000000000000402000100000002010000000000040000800108000080120000210000000000000800420080000000000000800014020000001200100000010000000002001200080400000080008000000000000000000001020000800000');
INSERT INTO "search_signatures" VALUES(2,X'0008000018100000A00000000040200000000000000800000000440000000000804000000000400800400000000000001200000000800001000000000000200000108060000204000400000080000000002000000008000000000000000000400000004002000000000000000080004128020000000000010000040000000A00180101008000400040000000000000000800000000001000000000040000000000800400000110000020200000040400010C020101800000000000080000000000012000200000002000000000000004420418000000000000000000800000000200A8040000008200000100000000006000000400200800008000009000000000000080000004000200001000000000000000800000000000000200040000001008000000000040000000000000408004080000020000000000100000000000000000400000004100000000000A04000400100800000000001000000000004000880001000000000002000200000000002000010044008C00000000010000000000040000100000040100010000000800420000000010000000000000000200004006800000000000000000000000000000000E002004000000000000800000110000000000002000400000000000184080000800000004210000000000000000080D000003001022000000040008000000090004008000000000000000000A00000000000000200100000000000000004000000000002020000000000800000080000000044000002080000100020000000000040000000000100020002000200400000040010000000000000000000000000000000400122200020001000000000080000004001000420000082004000000001400000000000000810004010000000014080000002001000000000000002000010800000004000000000000200000000040000004002000000000008800000000000102000100008084000014000000000000000000044C008002000000000000000000000000000008000040400800080014000080000010000000010000000004000001000000000002000004000000000010000000000000000200000000004000002204000000000008008000200000000010008240000000000040000200000002000001000000000004001000000000000040002420004000000080000001180002300020000088304000000000410000000040000000422610000000000000000000201000000000000008000000000200002A04200000000000000000000000000018000C008004000000000000000002000100000002010002000000040000800108000090100000210000000000000800460080000000000008800014020000001200100008000000800022001200081400000080000000000000000000000000000000800000');
INSERT INTO "search_signatures" VALUES(3,X'00080000180000408000000000402000000000000000110004004400200000008040000000004008004000000000000012001208008000010000400000002000001080400000040004004000800000000000000000080000102000000000004084000040020100200000000000C0004128020000000000010000040000000A00180000008000400040000000000000000900000400001000000000040000001000002604000030000020200020040400010C020001000000000000080000000000012000200000002000000080000004420418000000008000000000C00000000002A8040000088200000100000000006000000400A00000000000000000020000004080000000000200001000000000000000800000100000000200040000001008000000100000000000000400408004180000020100000000100000000028000000400000004100000000000A00040400140800000000001000000000004000800000000000000002000200000000000000018064008800000000010000201000040000180804000100010000000800420000000010000000000000000200004006800000200000000000000000000000000A0000040000000040008000005108000000000000004000000002001840810028000000042000000000000000000804000003001222000000040008000000090004208000000000000000000A000000000000000001800000000000000040000000100020200000080008000000800000000040002020800000010200000200000400000000001002200802000006002000400000000000000001000000000000000004005222000200010000000000804000040010004200000800040000000010200000000000008100048100000000040800000020010000000022000020000108000000000000000000002000000000000000040000000000000088000000000001020001000090840000100000000002000000000448008002000000000000000000000000000008000040400800080014080080000010000020110000000000000001000000000002000004000040000011000000001000040200000000004020002004000000000009008000200000000010008040000000000000400200100080000080000000001014001000000000400040002420004000000000000001190002000020001088100000000000410001000000800000400610000000004000000000201400000000000008000000040200002A04200000020000000000000000000018000C008004000000000000000002000100000002200000000000040000820108000080100000210000000000000800420080000000000000800014020804081200000008000000800022001200080400000080004000000000000000000004002000800000');
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
CREATE INDEX executions_by_age ON executions (created_at, execution_id);
CREATE INDEX executions_by_plan ON executions (plan_id, created_at, execution_id);
CREATE INDEX links_by_age ON links (created_at, link_id);
CREATE INDEX links_by_execution ON links (execution_id);
CREATE UNIQUE INDEX notifications_once ON notifications (target_id, execution_id, seq);
CREATE INDEX notifications_by_age ON notifications (created_at, notification_id);
CREATE INDEX notifications_due ON notifications (status, next_at);
CREATE INDEX flows_by_age ON plans (created_at, plan_id) WHERE name IS NOT NULL;
CREATE UNIQUE INDEX plans_by_name ON plans (name_key) WHERE name_key IS NOT NULL;
CREATE INDEX plans_by_age ON plans (created_at, plan_id);
CREATE INDEX spend_by_day ON spend (day);
CREATE INDEX answered_requests_by_age ON answered_requests (at);
CREATE INDEX artifact_uses_by_execution ON artifact_uses (execution);
CREATE UNIQUE INDEX batches_in_order ON batches (execution, first);
CREATE UNIQUE INDEX chat_messages_by_name ON chat_messages (message_id);
CREATE INDEX chat_messages_open ON chat_messages (id) WHERE status IN ('starting', 'executing', 'paused');
CREATE INDEX chat_messages_in_order ON chat_messages (chat_id, id);
CREATE INDEX notification_targets_by_flow ON notification_targets (plan_id);
CREATE INDEX triggers_by_age ON triggers (created_at, trigger_id);
CREATE UNIQUE INDEX triggers_by_entry ON triggers (plan_id, node_id);
CREATE UNIQUE INDEX deliveries_once ON deliveries (trigger_id, "key");
CREATE INDEX deliveries_by_age ON deliveries (trigger_id, received_at);
COMMIT;
PRAGMA user_version = 1;
