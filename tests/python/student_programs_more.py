# SPDX-License-Identifier: Apache-2.0
"""More ordinary programs, as student_programs has them."""

import math

import numpy as np


def amp_script(t, nn, F, optim, data, dist, init):
    device = "cuda" if t.cuda.is_available() else "cpu"
    X = t.from_numpy(np.random.default_rng(0).standard_normal((64, 10)).astype("float32"))
    Y = (X.sum(1) > 0).long()
    ds = data.TensorDataset(X, Y)
    dl = data.DataLoader(ds, batch_size=16, shuffle=False, num_workers=0, pin_memory=False)
    model = init(
        nn.Sequential(
            nn.Linear(10, 32), nn.LayerNorm(32), nn.GELU(), nn.Dropout(0.0), nn.Linear(32, 2)
        ).to(device)
    )
    opt = optim.AdamW(
        [
            {
                "params": [p for n, p in model.named_parameters() if p.ndim >= 2],
                "weight_decay": 0.1,
            },
            {"params": [p for n, p in model.named_parameters() if p.ndim < 2], "weight_decay": 0.0},
        ],
        lr=1e-2,
        betas=(0.9, 0.95),
    )
    sched = optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-2, total_steps=8)
    scaler = t.cuda.amp.GradScaler(enabled=False)
    crit = nn.CrossEntropyLoss(label_smoothing=0.1)
    out = []
    for epoch in range(2):
        model.train()
        correct = 0
        total = 0
        for i, (x, y) in enumerate(dl):
            x, y = x.to(device, non_blocking=True), y.to(device)
            opt.zero_grad(set_to_none=True)
            with t.autocast(device_type=device, dtype=t.bfloat16, enabled=False):
                logits = model(x)
                loss = crit(logits, y)
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
            sched.step()
            out.append(loss.detach().item())
            correct += (logits.argmax(dim=1) == y).sum().item()
            total += y.size(0)
        out.append(correct / total)
    out.append(sched.get_last_lr()[0])
    return out


def transformer(t, nn, F, optim, data, dist, init):
    class PositionalEncoding(nn.Module):
        def __init__(self, d, n=50):
            super().__init__()
            pe = t.zeros(n, d)
            pos = t.arange(0, n, dtype=t.float).unsqueeze(1)
            div = t.exp(t.arange(0, d, 2).float() * (-math.log(10000.0) / d))
            pe[:, 0::2] = t.sin(pos * div)
            pe[:, 1::2] = t.cos(pos * div)
            self.register_buffer("pe", pe.unsqueeze(0))

        def forward(self, x):
            return x + self.pe[:, : x.size(1)]

    class MHA(nn.Module):
        def __init__(self, d, h):
            super().__init__()
            self.h, self.dk = h, d // h
            self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))

        def forward(self, x, mask=None):
            B, T, C = x.size()
            q, k, v = (
                l(x).view(B, T, self.h, self.dk).transpose(1, 2) for l in (self.q, self.k, self.v)
            )
            s = q @ k.transpose(-2, -1) / math.sqrt(self.dk)
            if mask is not None:
                s = s.masked_fill(mask[:, :, :T, :T] == 0, float("-inf"))
            a = F.softmax(s, dim=-1)
            return self.o((a @ v).transpose(1, 2).contiguous().view(B, T, C))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(20, 16, padding_idx=0)
            self.pe = PositionalEncoding(16)
            self.layers = nn.ModuleList(
                [
                    nn.ModuleDict(
                        {
                            "att": MHA(16, 4),
                            "ff": nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16)),
                            "n1": nn.LayerNorm(16),
                            "n2": nn.LayerNorm(16),
                        }
                    )
                    for _ in range(2)
                ]
            )
            self.head = nn.Linear(16, 20, bias=False)
            self.register_buffer("mask", t.tril(t.ones(50, 50)).view(1, 1, 50, 50))

        def forward(self, ids, targets=None):
            x = self.pe(self.emb(ids) * math.sqrt(16))
            for l in self.layers:
                x = x + l["att"](l["n1"](x), self.mask)
                x = x + l["ff"](l["n2"](x))
            logits = self.head(x)
            loss = (
                None
                if targets is None
                else F.cross_entropy(
                    logits.view(-1, logits.size(-1)), targets.reshape(-1), ignore_index=0
                )
            )
            return logits, loss

    m = init(Model())
    g = np.random.default_rng(0)
    ids = t.from_numpy(g.integers(0, 20, (3, 9)))
    out = []
    opt = optim.Adam(m.parameters(), lr=3e-3, eps=1e-9)
    sched = optim.lr_scheduler.LambdaLR(opt, lambda s: min((s + 1) ** -0.5, (s + 1) * 4**-1.5))
    for i in range(4):
        _, loss = m(ids[:, :-1], ids[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        out.append(loss.item())
    m.eval()
    with t.no_grad():
        idx = t.zeros((1, 1), dtype=t.long) + 5
        for _ in range(4):
            logits = m(idx)[0][:, -1, :] / 0.7
            v, _ = t.topk(logits, min(5, logits.size(-1)))
            logits[logits < v[:, [-1]]] = -float("Inf")
            nxt = t.argmax(F.softmax(logits, dim=-1), dim=-1, keepdim=True)
            idx = t.cat((idx, nxt), dim=1)
    return out + idx[0].tolist() + [sum(p.numel() for p in m.parameters())]


def reinforce(t, nn, F, optim, data, dist, init):
    pi = init(nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 4)))
    vf = init(nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1)))
    opt = optim.Adam(list(pi.parameters()) + list(vf.parameters()), lr=1e-2)
    g = np.random.default_rng(0)
    out = []
    for it in range(3):
        obs = t.as_tensor(g.standard_normal((12, 3)), dtype=t.float32)
        act = t.as_tensor(g.integers(0, 4, 12))
        rew = g.standard_normal(12)
        R, ret = 0.0, []
        for r in rew[::-1]:
            R = r + 0.99 * R
            ret.insert(0, R)
        ret = t.tensor(ret, dtype=t.float32)
        ret = (ret - ret.mean()) / (ret.std(unbiased=False) + 1e-8)
        d = dist.Categorical(logits=pi(obs))
        v = vf(obs).squeeze(-1)
        adv = (ret - v).detach()
        old = d.log_prob(act).detach() - 0.1
        ratio = t.exp(d.log_prob(act) - old)
        s1, s2 = ratio * adv, t.clamp(ratio, 0.8, 1.2) * adv
        loss = -t.min(s1, s2).mean() + 0.5 * F.mse_loss(v, ret) - 0.01 * d.entropy().mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(pi.parameters(), max_norm=0.5)
        opt.step()
        out.append(loss.item())
    n = dist.Normal(t.zeros(4), t.ones(4) * 0.5)
    a = t.tensor([0.1, 0.2, 0.3, -0.4])
    tanh_a = t.tanh(a)
    lp = (n.log_prob(a) - t.log(1 - tanh_a.pow(2) + 1e-6)).sum(-1)
    ind = dist.Independent(n, 1)
    return out + [
        lp.item(),
        ind.log_prob(a).item(),
        dist.kl_divergence(n, dist.Normal(t.ones(4), t.ones(4))).sum().item(),
    ]


def gan(t, nn, F, optim, data, dist, init):
    def weights_init(m):
        classname = m.__class__.__name__
        if classname.find("Conv") != -1:
            nn.init.normal_(m.weight.data, 0.0, 0.02)
        elif classname.find("BatchNorm") != -1:
            nn.init.normal_(m.weight.data, 1.0, 0.02)
            nn.init.constant_(m.bias.data, 0)

    G = nn.Sequential(
        nn.ConvTranspose2d(8, 16, 4, 1, 0, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(True),
        nn.ConvTranspose2d(16, 1, 4, 2, 1, bias=False),
        nn.Tanh(),
    )
    D = nn.Sequential(
        nn.Conv2d(1, 8, 4, 2, 1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(8, 1, 4, 1, 0, bias=False),
        nn.Sigmoid(),
    )
    G.apply(weights_init)
    D.apply(weights_init)
    G = init(G)
    D = init(D)
    og, od = (
        optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.999)),
        optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.999)),
    )
    crit = nn.BCELoss()
    g = np.random.default_rng(0)
    out = []
    for i in range(3):
        real = t.tensor(g.standard_normal((6, 1, 8, 8)), dtype=t.float)
        z = t.tensor(g.standard_normal((6, 8, 1, 1)), dtype=t.float)
        D.zero_grad()
        label = t.full((6,), 1.0, dtype=t.float)
        e1 = crit(D(real).view(-1), label)
        e1.backward()
        fake = G(z)
        label.fill_(0.0)
        e2 = crit(D(fake.detach()).view(-1), label)
        e2.backward()
        od.step()
        G.zero_grad()
        label.fill_(1.0)
        eg = crit(D(fake).view(-1), label)
        eg.backward()
        og.step()
        out += [e1.item() + e2.item(), eg.item()]
    # gradient penalty
    x = t.tensor(g.standard_normal((6, 1, 8, 8)), dtype=t.float, requires_grad=True)
    gr = t.autograd.grad(
        outputs=D(x),
        inputs=x,
        grad_outputs=t.ones(6, 1, 1, 1),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    gp = ((gr.view(6, -1).norm(2, dim=1) - 1) ** 2).mean()
    gp.backward()
    return out + [gp.item(), D[0].weight.grad.norm().item()]


def maml(t, nn, F, optim, data, dist, init):
    net = init(nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)))
    g = np.random.default_rng(0)
    params = dict(net.named_parameters())
    out = []

    # PyTorch before 2.0 has it elsewhere.
    called = t.func.functional_call if hasattr(t, "func") else nn.utils.stateless.functional_call

    def fwd(p, x):
        return called(net, p, (x,))

    opt = optim.SGD(net.parameters(), lr=0.1)
    for it in range(3):
        opt.zero_grad()
        total = 0.0
        for task in range(2):
            x = t.tensor(g.uniform(-2, 2, (6, 1)), dtype=t.float32)
            y = t.sin(x + task)
            loss = F.mse_loss(fwd(params, x), y)
            grads = t.autograd.grad(loss, list(params.values()), create_graph=True)
            fast = {k: p - 0.05 * gg for (k, p), gg in zip(params.items(), grads)}
            total = total + F.mse_loss(fwd(fast, x + 0.1), t.sin(x + 0.1 + task))
        total.backward()
        opt.step()
        out.append(total.item())
    return out


def misc(t, nn, F, optim, data, dist, init):
    t.manual_seed(0)
    out = []
    x = t.tensor(np.arange(24.0).reshape(2, 3, 4), dtype=t.float32)
    out += [
        x.mean(dim=(0, 1)).sum().item(),
        x.var(dim=1, unbiased=False).sum().item(),
        x.std(unbiased=False).item(),
        x.amax(dim=(1, 2)).sum().item(),
        t.logsumexp(x, dim=(1, 2)).sum().item(),
    ]
    v, i = x.max(dim=2)
    out += [v.sum().item(), i.sum().item()]
    v, i = t.median(x, dim=1)
    out.append(v.sum().item())
    out += (
        t.split(x, [1, 2], dim=1)[1].flatten()[:3].tolist()
        + t.chunk(x, 2, dim=-1)[1].flatten()[:2].tolist()
    )
    y = t.zeros(3, 5).scatter_(1, t.tensor([[0], [2], [4]]), 1.0)
    out.append(y.argmax(1).sum().item())
    y.index_add_(0, t.tensor([0, 2]), t.ones(2, 5))
    out.append(y.sum().item())
    out += t.where(x > 5, x, t.zeros_like(x)).sum(dim=[1, 2]).tolist()
    idx = t.argwhere(x[0] > 5)
    out += idx.flatten().tolist()
    a, b = t.where(x[0] > 5)
    out.append((a * b).sum().item())
    u, inv, c = t.unique(t.tensor([3, 1, 3, 2]), return_inverse=True, return_counts=True)
    out += u.tolist() + inv.tolist() + c.tolist()
    out += (
        t.einsum("bij,bkj->bik", x, x).flatten()[:3].tolist()
        + t.bmm(x, x.transpose(1, 2)).flatten()[-2:].tolist()
    )
    out += (
        t.linspace(0, 1, steps=5).tolist()
        + t.logspace(0, 2, 3).tolist()
        + t.eye(2).flatten().tolist()
    )
    out += t.triu(t.ones(3, 3), diagonal=1).flatten().tolist()
    out += t.cumsum(x[0], dim=0)[-1].tolist()
    out.append(t.cdist(x[0], x[1]).sum().item())
    out += t.stack([x[0], x[1]], dim=-1).shape
    out += list(x.unsqueeze(0).expand(3, -1, -1, -1).shape)
    out.append(F.cosine_similarity(x[0], x[1], dim=-1).sum().item())
    out.append(t.dist(x[0], x[1]).item())
    out += F.one_hot(t.tensor([0, 2]), 3).flatten().tolist()
    out += t.bucketize(t.tensor([1.0, 6.0]), t.tensor([0.0, 2.0, 5.0])).tolist()
    out += (
        t.polygamma(1, t.tensor([1.0, 2.0])).tolist() + t.special.logit(t.tensor([0.2])).tolist()
        if hasattr(t.special, "logit")
        else [0]
    )
    w = nn.utils.spectral_norm(nn.Linear(3, 2))
    out += list(w(t.ones(1, 3)).shape)
    fl = nn.Flatten()(x)
    out += list(fl.shape)
    out.append(t.equal(x, x) is True or True)
    h = []
    lin = nn.Linear(4, 2)
    lin.register_forward_hook(lambda m, i, o: h.append(o.shape))
    lin(x)
    out += list(h[0])
    sd = lin.state_dict()
    out.append(len(sd))
    p = next(lin.parameters())
    out.append(p.requires_grad)
    out.append(t.allclose(t.fft.irfft(t.fft.rfft(x)), x, atol=1e-5))
    out.append(t.is_tensor(x))
    out.append(x.dim())
    out.append(x.nelement())
    with t.no_grad():
        lin.weight.copy_(t.ones(lin.weight.shape))
        lin.bias.zero_()
        out.append(lin(x).sum().item())
    out += t.meshgrid(t.arange(2), t.arange(3), indexing="ij")[0].flatten().tolist()
    out += t.combinations(t.arange(3)).flatten().tolist()
    out += t.tensor([1, 2, 3])[[True, False, True]].tolist()
    z = x.clone()
    z[:, 1, ::2] += 10
    out.append(z.sum().item())
    z[z > 20] = 0
    out.append(z.sum().item())
    return [float(v) for v in out]


ALL = [amp_script, transformer, reinforce, gan, maml, misc]
